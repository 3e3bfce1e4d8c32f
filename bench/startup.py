"""Start-up: wall time of `status`, of getting ready, and what importing the package loads."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

_HEAVY = ("pydantic_ai", "openai", "anthropic", "starlette", "uvicorn", "httpx2", "prompt_toolkit", "rich")


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "KEEPSAID_HOME": str(home)}


def status_s(home: Path, runs: int) -> float:
    """Median wall seconds of `keepsaid status`."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        command = [sys.executable, "-m", "keepsaid", "status"]
        subprocess.run(command, env=_environment(home), check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def ready_s(home: Path, runs: int) -> float:
    """Median wall seconds from starting `serve` to a server that answers: its runtime file is there."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        command = [sys.executable, "-m", "keepsaid", "serve", "--port", "0"]
        server = subprocess.Popen(command, env=_environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        file = home / "run" / "runtime.json"
        while not file.exists():
            if server.poll() is not None:
                raise RuntimeError("serve ended")
            os.sched_yield()
        times.append(time.perf_counter() - start)
        server.terminate()
        server.wait()
    return statistics.median(times)


def imported() -> list[str]:
    """Heavy packages that `import keepsaid` loads; there should be none."""
    code = f"import sys, json, keepsaid; print(json.dumps([m for m in {_HEAVY!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return list(json.loads(done.stdout))


def measure(folder: Path, scale: float) -> dict[str, object]:
    """All figures of starting up."""
    runs = max(3, int(9 * scale))
    said = "hello\n"
    command = [sys.executable, "-m", "keepsaid", "chat"]
    subprocess.run(command, input=said, text=True, env=_environment(folder), check=True, capture_output=True)
    return {
        "status_s": status_s(folder, runs),
        "ready_s": ready_s(folder, runs),
        "heavy_imports": imported(),
    }
