"""Where a delivery goes: what a URL says about the connection and about the first lines of the request."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from typing import NamedTuple

from yarl import URL

# What a URL consists of when it is already encoded; such a URL goes out to the letter, since it may be signed.
_ENCODED_URL = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~|]+")


class Origin(NamedTuple):
    """Which connections may carry a request: those to the same place in the same manner."""

    scheme: str
    host: str
    """A name in ASCII or an address, without brackets."""
    port: int

    @classmethod
    def of(cls, url: URL) -> Origin:
        """The origin of an absolute URL; see `parse_url`."""
        return cls(url.scheme, url.raw_host or "", url.port or 0)


@dataclass(frozen=True, slots=True)
class Destination:
    """What is computed once for all deliveries to one URL."""

    origin: Origin
    opening: str
    """All of the request that comes between the method and the first header of ours, without the last line's end."""
    authorization: str | None
    """The header line that the URL's user and password make."""

    @classmethod
    def parse(cls, text: str) -> Destination:
        """Raises ValueError when `text` is no absolute http or https URL."""
        url = parse_url(text)
        return cls(
            origin=Origin.of(url),
            opening=f" {url.raw_path_qs} HTTP/1.1\r\nHost: {url.host_port_subcomponent}",
            authorization=_authorization(url),
        )


def parse_url(text: str) -> URL:
    """The URL to send to. Raises ValueError when it is no absolute http or https URL."""
    url = URL(text, encoded=_ENCODED_URL.fullmatch(text) is not None)
    if url.scheme not in ("http", "https") or not url.raw_host or url.port is None:
        raise ValueError("not an absolute http or https URL")
    return url


def _authorization(url: URL) -> str | None:
    if url.raw_user is None and url.raw_password is None:
        return None
    credentials = f"{url.user or ''}:{url.password or ''}"
    return f"Authorization: Basic {b64encode(credentials.encode('latin-1')).decode()}"
