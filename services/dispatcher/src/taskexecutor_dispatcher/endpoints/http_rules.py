"""What both HTTP clients keep to, whichever of them sends."""

from __future__ import annotations

import ssl
from importlib.metadata import version

USER_AGENT = f"TaskExecutor/{version('taskexecutor-dispatcher')}"

# Below the shortest default among common servers (gunicorn closes idle connections after 2 s, Node.js, uvicorn and
# Apache after 5 s), so that a request rarely crosses the closing of its connection to begin with.
KEEP_ALIVE_SEC = 1.5
DNS_CACHE_SEC = 10.0

# Bodies above this are written in pieces, so that other deliveries get their turn.
LARGE_BODY_BYTES = 256 * 1024

SHUTTING_DOWN = "The dispatcher is shutting down."
BAD_DESTINATION = "The URL or the signing secret is not valid."
BAD_URL = "The URL is not valid."
BAD_HEADER = "A header cannot be sent over HTTP."


def verifying_tls() -> ssl.SSLContext:
    """TLS 1.2 or later, certificates and host names verified against the system's authorities, HTTP/1.1 only."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
