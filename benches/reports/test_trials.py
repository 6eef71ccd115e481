"""The trials of a run as tests, for pytest-html: `peers.mjs` writes them."""

import json
import os
import pathlib

import pytest

TRIALS = [json.loads(line) for line in pathlib.Path(os.environ["TRIALS"]).read_text().splitlines()]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial["name"])
def test_trial(trial):
    for text in trial["texts"]:
        print(text)
    if trial["outcome"] == "broken":
        raise RuntimeError(trial["reason"])
    assert trial["outcome"] == "passed", trial["reason"]
