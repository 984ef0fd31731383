"""A receiver to play with, `python -m taskexecutor_local.receiver PORT`: prints each request and answers 200."""

from __future__ import annotations

import http.server
import json
import sys

from taskexecutor_local.ports import LOOPBACK

DEFAULT_PORT = 9000


class Receiver(http.server.BaseHTTPRequestHandler):
    """Prints method, path, headers and body."""

    def do_POST(self) -> None:
        """Answers any POST."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        print(
            f"\n{self.command} {self.path}\n{str(self.headers).strip()}\n\n{body.decode(errors='replace')}", flush=True
        )
        answer = json.dumps({"received": True}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

    def log_message(self, format: str, *args: object) -> None:
        """The request itself is printed; http.server's own line says less."""


def main() -> None:
    """Serves until Ctrl-C."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_PORT
    with http.server.ThreadingHTTPServer((LOOPBACK, port), Receiver) as server:
        print(f"waiting for requests at http://{LOOPBACK}:{port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
