"""The header names that users may not set, because deliveries or their transport set them."""

from __future__ import annotations

_IDENTITY = frozenset({"idempotency-key", "traceparent", "tracestate", "user-agent"})
_IDENTITY_PREFIXES = ("webhook-", "task-executor-")
# Framing and hop-by-hop fields (RFC 9110, section 7.6.1): they belong to the connection and not to the message.
_CONNECTION = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def carries_identity(name: str) -> bool:
    """True for the headers by which a delivery says which one it is, of any transport."""
    lowered = name.lower()
    return lowered in _IDENTITY or lowered.startswith(_IDENTITY_PREFIXES)


def frames_http(name: str) -> bool:
    """True for the headers by which HTTP connections are kept in order."""
    return name.lower() in _CONNECTION
