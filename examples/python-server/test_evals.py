"""Runs the evals of the server that need no model, over both protocol eras: `pytest`."""

import sys

from mcp_evals.testing import ServerEvals

COMMAND = [sys.executable, "server.py"]
IDS = ["word-count-counts"]

handshake = ServerEvals(COMMAND, ids=IDS, protocol="handshake", yes=True)
stateless = ServerEvals(COMMAND, ids=IDS, protocol="stateless", yes=True)
