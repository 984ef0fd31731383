"""What a Redis URL names: a server, a database in it, and who we are there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, unquote, urlsplit

DEFAULT_PORT = 6379


@dataclass(frozen=True, slots=True, repr=False)
class RedisServer:
    """One server with credentials and database. No repr, since it holds a password."""

    host: str
    port: int
    username: str | None = None
    password: str | None = None
    database: int = 0
    tls: bool = False

    @classmethod
    def parse(cls, url: str) -> RedisServer:
        """Reads `redis[s]://[[user]:password@]host[:port][/database]`, with `?db=` as another way to say the last.

        Other query parameters are refused: client libraries take them for settings, such as not to verify TLS.
        Raises ValueError with what is wrong, to be read after "the Redis URL"; it never shows the URL.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise ValueError("is not a URL") from None
        if parts.scheme not in ("redis", "rediss") or not host:
            raise ValueError("must begin with redis:// or rediss:// and name a host")
        return cls(
            host=host,
            port=port if port is not None else DEFAULT_PORT,
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            database=_database(parts.path, parts.query),
            tls=parts.scheme == "rediss",
        )

    @property
    def place(self) -> str:
        """`host:port`, for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host[:253]}:{self.port}"

    def at(self, host: str, port: int) -> RedisServer:
        """Another node of the same cluster; an empty host stands for this one's."""
        return replace(self, host=host or self.host, port=port)


def _database(path: str, query: str) -> int:
    options = parse_qsl(query, keep_blank_values=True)
    if any(name != "db" for name, _ in options):
        raise ValueError("takes no query parameter but db")
    given = [text for text in (path.strip("/"), *(value for _, value in options)) if text]
    if not given:
        return 0
    if len(given) > 1 or not (given[0].isascii() and given[0].isdigit() and len(given[0]) < 10):
        raise ValueError("must name its database by one number, as in redis://host:6379/0")
    return int(given[0])
