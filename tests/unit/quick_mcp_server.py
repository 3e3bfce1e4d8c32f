"""A server of one tool over its standard streams, which starts at once: `python quick_mcp_server.py`."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def answered(request: dict[str, Any]) -> dict[str, Any]:
    """The result of a request, or that its method is not known."""
    if request["method"] == "initialize":
        version = request["params"]["protocolVersion"]
        info = {"name": "desk", "version": "1"}
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
    if request["method"] == "tools/list":
        about = os.environ.get("DESK_ABOUT", "Add two numbers.")
        return {"result": {"tools": [{"name": "add", "description": about, "inputSchema": {"type": "object"}}]}}
    return {"error": {"code": -32601, "message": "no such method"}}


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            said = {"jsonrpc": "2.0", "id": request["id"], **answered(request)}
            sys.stdout.write(f"{json.dumps(said)}\n")
            sys.stdout.flush()
