"""A package index on this machine that pip can download from: one file of one package, whole, cut off or on demand."""

from __future__ import annotations

import hashlib
import io
import os
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from keepsaid.adapters.embedders.fetching import Wheel


def wheel_of(name: str, files: Mapping[str, bytes]) -> tuple[Wheel, bytes]:
    """A wheel with a model's files, and its bytes."""
    plain, made = name.replace("-", "_"), io.BytesIO()
    about = f"{plain}-0.1.0.dist-info"
    with zipfile.ZipFile(made, "w") as packed:
        for file, content in files.items():
            packed.writestr(f"{plain}/model/{file}", content)
        packed.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
        packed.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr(f"{about}/RECORD", "")
    content = made.getvalue()
    inside = {file: f"{plain}/model/{file}" for file in files}
    return Wheel(name, "0.1.0", 1, hashlib.sha256(content).hexdigest(), inside, "under the Apache License"), content


def pip_asks(port: int) -> dict[str, str]:
    """The environment in which pip asks the index at a port of this machine alone, once, and keeps nothing."""
    return {
        "PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple",
        "PIP_FIND_LINKS": f"http://127.0.0.1:{port}/simple/",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_CACHE_DIR": "1",
        "PIP_RETRIES": "0",
        "no_proxy": "127.0.0.1",
    }


@dataclass
class Index:
    """What is served, and how: `whole` false cuts a download off; one waits in its middle for `go_on`."""

    wheel: Wheel
    content: bytes
    port: int = 0
    whole: bool = True
    asked: list[str] = field(default_factory=list)
    go_on: Callable[[], object] = lambda: None

    @property
    def file(self) -> str:
        """The name of the wheel's file."""
        return f"{self.wheel.name.replace('-', '_')}-{self.wheel.version}-py3-none-any.whl"

    @property
    def environment(self) -> dict[str, str]:
        """By which pip finds this index and no other."""
        return pip_asks(self.port)


def _answers(index: Index) -> type[BaseHTTPRequestHandler]:
    class Answers(BaseHTTPRequestHandler):
        """The simple index, and the file."""

        def do_GET(self) -> None:
            index.asked.append(self.path)
            if self.path.endswith(".whl"):
                self._send("application/octet-stream", index.content, half=True)
            elif self.path == f"/simple/{index.wheel.name}/":
                self._send("text/html", f'<a href="/files/{index.file}">{index.file}</a>'.encode())
            else:
                self.send_error(404)

        def _send(self, kind: str, content: bytes, *, half: bool = False) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            middle = len(content) // 2 if half else 0
            self.wfile.write(content[:middle])
            self.wfile.flush()
            if half:
                index.go_on()
            if index.whole or not half:
                self.wfile.write(content[middle:])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Tests read what was asked from the index."""

    return Answers


@contextmanager
def package_index(wheel: Wheel, content: bytes) -> Iterator[Index]:
    """An index that listens on this machine."""
    index = Index(wheel, content)
    with ThreadingHTTPServer(("127.0.0.1", 0), _answers(index)) as server:
        index.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, name="package-index")
        thread.start()
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()
