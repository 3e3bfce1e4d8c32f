"""Client for hooks that are commands: sends stdin to keepsaid and prints its answer; standard library alone.

`python3 -S keepsaid_hook.py AGENT` reads address and key from AGENT.json beside this file, or from the variables
KEEPSAID_HOOK_URL and KEEPSAID_HOOK_TOKEN. It never fails: without memory the agent works as before.
"""

import json
import os
import socket
import sys
import time

STARTS_S, WAITS_S, STEP_S = 2.0, 5.0, 0.05
"""Seconds to wait for a server that starts, for an answer, and between two looks."""


def call(url: str, method: str, path: str, token: str = "", body: bytes = b"") -> tuple[int, bytes]:
    """Return status and body of a response, with status 0 where no server answers."""
    host, _, port = url.partition("//")[2].rstrip("/").rpartition(":")
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {token}\r\n" if token else ""
    answer = b""
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=WAITS_S) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            while part := connection.recv(65_536):
                answer += part
        return int(answer.split(None, 2)[1]), answer.partition(b"\r\n\r\n")[2]
    except (OSError, ValueError, IndexError):
        return 0, b""


def ready(url: str) -> bool:
    """Whether the server is ready, at once or within two seconds."""
    until = time.monotonic() + STARTS_S
    while call(url, "GET", "/readyz")[0] != 200:
        if time.monotonic() >= until:
            return False
        time.sleep(STEP_S)
    return True


def settings(agent: str) -> dict[str, str]:
    """Address and key; empty where nothing was written."""
    try:
        with open(f"{os.path.dirname(os.path.abspath(__file__))}/{agent}.json", encoding="utf-8") as file:  # noqa: PTH100, PTH120, PTH123
            return dict(json.load(file))
    except (OSError, ValueError, TypeError):
        return {}


def main(agent: str) -> None:
    """Answer one hook. Only a session that starts without memory is given a line for its user."""
    if os.environ.get("KEEPSAID_OFF", "").lower() not in ("", "0", "false", "no", "off"):
        return
    found, body = settings(agent), sys.stdin.buffer.read()
    url = os.environ.get("KEEPSAID_HOOK_URL") or found.get("url", "http://127.0.0.1:7448")
    token = os.environ.get("KEEPSAID_HOOK_TOKEN") or found.get("token", "")
    starts = b'"SessionStart"' in body
    if starts and not ready(url):
        print(json.dumps({"systemMessage": "memory not running: keepsaid serve"}))
        return
    status, answer = call(url, "POST", f"/v1/hooks/{agent}", token, body)
    if status == 200 and answer.strip() != b"{}":
        print(answer.decode())
    elif starts and status in (401, 403):
        print(json.dumps({"systemMessage": f"memory refuses the key: keepsaid ext connect {agent}"}))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "claude-code")
