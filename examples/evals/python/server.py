"""A small MCP server that ships evals, on the official Python SDK (mcp 2.3).

Run: pip install mcp==2.3.0 && python server.py [--http PORT]

The SDK serves methods that are not in the protocol through an `Extension`. It leaves out capabilities
that a protocol version does not know, so a middleware adds them to what the server says of itself.
"""

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, RequestParams, ToolAnnotations
from pydantic import Field

EVALS = json.loads((Path(__file__).parent.parent / "evals.json").read_text())["evals"]
PAGE_SIZE = 2


class ListEvalsParams(RequestParams):
    cursor: str | None = None
    level: Literal["invocation", "execution", "scenario"] | None = None


class Evals(Extension):
    """The `evals` primitive: everything a server needs to ship evals."""

    identifier = "dev.mcp-proctor/evals"

    def methods(self) -> list[MethodBinding]:
        return [MethodBinding("evals/list", ListEvalsParams, self.list_evals)]

    async def list_evals(self, _context: Any, params: ListEvalsParams) -> dict[str, Any]:
        # Cursors are opaque to clients; here one is the number of evals already sent.
        if not re.fullmatch("[0-9]{0,9}", params.cursor or ""):
            raise MCPError(INVALID_PARAMS, f"unknown cursor {params.cursor!r}")
        start = int(params.cursor or 0)
        wanted = [e for e in EVALS if params.level in (None, e["input"]["type"])]
        result: dict[str, Any] = {"evals": wanted[start : start + PAGE_SIZE]}
        if start + PAGE_SIZE < len(wanted):
            result["nextCursor"] = str(start + PAGE_SIZE)
        return result


async def declare_evals(context: Any, call_next: Any) -> Any:
    result = await call_next(context)
    if context.method in ("initialize", "server/discover"):
        capabilities = result["capabilities"]
        capabilities["evals"] = {}
        capabilities.setdefault("experimental", {})["evals"] = {}
        capabilities.setdefault("extensions", {})[Evals.identifier] = {}
    return result


server = MCPServer("notes", version="1.0.0", extensions=[Evals()])
server.middleware.append(declare_evals)
notes: list[str] = []


@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def word_count(text: Annotated[str, Field(description="Any text.")]) -> str:
    """Counts the words of a text."""
    return str(len(text.split()))


@server.tool(annotations=ToolAnnotations(destructive_hint=False), structured_output=False)
def add_note(text: Annotated[str, Field(description="The note.")]) -> str:
    """Keeps a note until the server ends."""
    notes.append(text)
    return f"note {len(notes)} is kept"


@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def find_notes(query: Annotated[str, Field(description="What a note must contain.")]) -> str:
    """Finds the notes that contain a text."""
    found = [note for note in notes if query.lower() in note.lower()]
    return "\n".join(found) or "no note was found"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run()
