"""The head of a delivery's request, as the bytes that go over the wire."""

from __future__ import annotations

from functools import lru_cache

from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.endpoint_types.http import HEADER_NAME, HttpRequest
from taskexecutor_dispatcher.endpoints.http_destinations import Destination
from taskexecutor_dispatcher.endpoints.http_headers import (
    ACCEPTED_ENCODING,
    IDENTITY_NAMES,
    identity_values,
    is_ours,
    signature,
)

# All control characters but the tab; the ends of lines are among them, and counted.
_CONTROLS = bytes({*range(0x20), 0x7F} - {ord("\t")})
_ACCEPT_ANYTHING: str | None = "Accept: */*"
# Names come from endpoints' specs and not from inputs, so there are not many.
_REMEMBERED_NAMES = 4096


class UnsendableHeader(ValueError):
    """A header that would break the request, or that contradicts the URL."""


class RequestHeads:
    """Writes heads; made once, with what is the same in all of them."""

    def __init__(self, user_agent: str) -> None:
        ours = [f"{name}: %s" for name in IDENTITY_NAMES]
        ours += [f"User-Agent: {user_agent.replace('%', '%%')}", ": ".join(ACCEPTED_ENCODING)]
        self._ours = "\r\n".join(ours)
        # Line ends within what is written as one piece: the request line's, and those between our own.
        self._inner_ends = 1 + len(ours) - 1

    def write(
        self, request: HttpRequest, identity: DeliveryIdentity, sent_at_sec: int, destination: Destination
    ) -> bytes:
        """The head, with the empty line that ends it. Raises UnsendableHeader, or ValueError for the signing secret."""
        lines = [request.method + destination.opening, self._ours % identity_values(identity, sent_at_sec)]
        if request.signing_secret is not None:
            lines.append(f"webhook-signature: {signature(request, identity, sent_at_sec)}")
        accept = _ACCEPT_ANYTHING
        for name, value in request.headers:
            if (start := _line_start(name)) is not None:
                lines.append(start + value)
            if len(name) == 6 and name.lower() == "accept":
                accept = None
        if accept is not None:
            lines.append(accept)
        if destination.authorization is not None:
            lines.append(_only_authorization(request, destination.authorization))
        # Without a body, only methods that usually have none leave the length out: RFC 9110, section 8.6.
        if request.body or request.method != "GET":
            lines.append(f"Content-Length: {len(request.body or b'')}")
        lines += ("", "")
        return self._checked("\r\n".join(lines), len(lines) - 1)

    def _checked(self, head: str, outer_ends: int) -> bytes:
        """The head's bytes when it has exactly the lines that we wrote and no other control character, whatever the
        values hold and wherever they come from."""
        try:
            encoded = head.encode()
        except UnicodeEncodeError:
            raise UnsendableHeader from None
        controls = len(encoded) - len(encoded.translate(None, _CONTROLS))
        if controls != 2 * (self._inner_ends + outer_ends):
            raise UnsendableHeader
        return encoded


@lru_cache(_REMEMBERED_NAMES)
def _line_start(name: str) -> str | None:
    """What comes before a header's value; None for a header that is ours to set."""
    if is_ours(name):
        return None
    if HEADER_NAME.fullmatch(name) is None:
        raise UnsendableHeader
    return f"{name}: "


def _only_authorization(request: HttpRequest, authorization: str) -> str:
    if any(name.lower() == "authorization" for name, _ in request.headers):
        raise UnsendableHeader
    return authorization
