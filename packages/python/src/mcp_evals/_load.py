"""Reads evals from a JSON or YAML file: a list, or an object with a list `evals`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from ._types import InvalidEvals


def load_evals(path: str | os.PathLike[str]) -> list[Any]:
    """The evals of a file, not yet validated."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidEvals(f"can't read `{path}`: {error}") from error
    if path.suffix.lower() in (".yaml", ".yml"):
        value = _yaml(text, path)
    else:
        value = _json(text, path)
    if isinstance(value, dict):
        value = value.get("evals")
    if not isinstance(value, list):
        raise InvalidEvals(f"`{path}`: expected a list of evals, or an object with a list `evals`")
    return value


def _json(text: str, path: Path) -> Any:
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise InvalidEvals(f"`{path}`: the key `{key}` occurs twice in one object")
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=members)
    except json.JSONDecodeError as error:
        raise InvalidEvals(f"`{path}` is not JSON: {error}") from error


def _yaml(text: str, path: Path) -> Any:
    try:
        import yaml
    except ImportError as error:
        hint = "install it with `pip install mcp-evals[yaml]`"
        raise InvalidEvals(f"`{path}` needs PyYAML; {hint}") from error
    try:
        return yaml.load(text, Loader=_loader(yaml))
    except yaml.YAMLError as error:
        raise InvalidEvals(f"`{path}` is not YAML: {error}") from error


def _loader(yaml: Any) -> Any:
    """A loader of YAML 1.2, as Proctor reads it: `no` is a word, and a date is a string."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, list[Any]] = {}

    def members(loader: Any, node: Any) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in found:
                problem = f"the key `{key}` occurs twice in one map"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            found[key] = loader.construct_object(value_node, deep=True)
        return found

    def integer(_loader: Any, node: Any) -> int:
        bases = {"0o": 8, "0x": 16}
        base = bases.get(node.value[:2], 10)
        return int(node.value if base == 10 else node.value[2:], base)

    for tag, pattern, first in (
        ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
        ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
        ("int", r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", list("-+0123456789")),
        (
            "float",
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
            list("-+0123456789."),
        ),
    ):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)
    Loader.add_constructor("tag:yaml.org,2002:map", members)
    Loader.add_constructor("tag:yaml.org,2002:int", integer)
    return Loader
