"""Serves /metrics, from a thread of its own so that a busy event loop still answers."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import start_http_server

from taskexecutor_common.config.addresses import metrics_address


def serve_metrics(address: str) -> tuple[int | None, Callable[[], None]]:
    """Listens on host:port (port 0: a free one). Answers the port and a function that stops it.

    An empty address serves none."""
    if not address:
        return None, lambda: None
    host, port = metrics_address(address)
    server, thread = start_http_server(port, addr=host)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)

    return server.server_port, stop
