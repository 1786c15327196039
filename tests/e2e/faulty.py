"""Servers that are slow, wrong or refuse, for what sends to servers."""

from __future__ import annotations

import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Handle = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def server(handle: Handle, certificate: Path | None = None):
    """A server that answers as `handle` does. Gives its address and the headers of all requests."""
    requests: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(dict(self.headers) | {"path": self.path})
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            handle(self)

        do_PUT = do_POST

        def log_message(self, *_) -> None:
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving.daemon_threads = True
    scheme = "http"
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        serving.socket = context.wrap_socket(serving.socket, server_side=True)
        scheme = "https"
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    try:
        yield f"{scheme}://localhost:{serving.server_port}", requests
    finally:
        serving.shutdown()
        serving.server_close()


def answering(code: int, body: bytes = b"", **headers: str) -> Handle:
    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(code)
        for name, value in (headers | {"Content_Length": str(len(body))}).items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return handle


def drips(request: BaseHTTPRequestHandler) -> None:
    """Sends a byte of its answer each second, for ever."""
    try:
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 3600:
            request.wfile.write(bytes([byte]))
            time.sleep(1)
    except OSError:
        pass


def self_signed(directory: Path) -> tuple[Path, Path]:
    """A new certificate for `localhost` that nobody has signed, alone and with its key."""
    key, certificate, both = (directory / name for name in ("key.pem", "certificate.pem", "both.pem"))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    both.write_text(key.read_text() + certificate.read_text())
    return certificate, both
