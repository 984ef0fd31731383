"""Whether a connection string can be read, by libpq's own parser.

psycopg lives in the store; its parser alone is used here, so that a string is judged by who connects with it.
"""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

from taskexecutor_common.config.addresses import HIGHEST_PORT, is_port


def check_database_url(text: str) -> str:
    """Answers `text` when libpq can read it; ValueError else, which shows nothing of it: a part of it may be a password."""
    try:
        parts = conninfo_to_dict(text)
    except psycopg.Error:  # it quotes what it could not read
        raise ValueError(
            "libpq cannot read it; expected postgresql://user:password@host:port/database or `host=... dbname=...`, "
            "and in a URL %20 for a space, %25 for a percent sign and so on"
        ) from None
    # Of several hosts each may have its own port; an empty one is the default.
    ports = str(parts.get("port", "")).split(",")
    if not all(is_port(port, lowest=1) for port in ports if port.strip()):
        raise ValueError(
            f"its port is no number of 1 to {HIGHEST_PORT}; "
            "a password in a URL has %2F for a slash, %3A for a colon, %40 for an at sign"
        )
    return text
