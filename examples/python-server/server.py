"""An MCP server that ships evals with the package `mcp-evals`.

Run: pip install mcp-evals && python server.py [--http PORT]
"""

import sys
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp_evals import add_evals
from mcp_types import ToolAnnotations
from pydantic import Field

server = MCPServer("notes", version="1.0.0")
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


add_evals(server, Path(__file__).with_name("evals.json"))

if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run()
