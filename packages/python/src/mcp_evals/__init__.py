"""Ship evals with an MCP server: `add_evals(server, "evals.json")`.

The wire format is described in the `SPEC.md` of Proctor's `mcp-evals` crate.
"""

from ._build import execution, invocation, scenario, text
from ._load import load_evals
from ._server import Evals, add_evals
from ._suite import EvalSuite, InvalidParams
from ._types import (
    CAPABILITY,
    EXTENSION,
    LIST_CHANGED,
    LISTEN_KEY,
    METHOD,
    Eval,
    Finding,
    InvalidEvals,
    Level,
)
from ._validate import validate

__all__ = [
    "CAPABILITY",
    "EXTENSION",
    "LISTEN_KEY",
    "LIST_CHANGED",
    "METHOD",
    "Eval",
    "EvalSuite",
    "Evals",
    "Finding",
    "InvalidEvals",
    "InvalidParams",
    "Level",
    "add_evals",
    "execution",
    "invocation",
    "load_evals",
    "scenario",
    "text",
    "validate",
]
