"""Reading answers off a connection: the parser of Node.js (`httptools`), with bounds on all that a receiver may send."""

from __future__ import annotations

from typing import NamedTuple

import httptools

from taskexecutor_dispatcher.endpoints.bodies import DRAINED_BYTES, KEPT_BYTES, Body, named_charset
from taskexecutor_dispatcher.endpoints.http_failures import AnswerCut, AnswerNotHttp, ConnectionLost

HEAD_BYTES = 64 * 1024
"""Bound of an answer's head, with the interim answers before it."""
HEADER_LINES = 128
"""Bound of the header lines in it."""
ANSWER_BYTES = 1024 * 1024
"""Bound of all that is read of an answer, so that the frames of chunks and the trailers have one too."""

_SWITCHING_PROTOCOLS = 101

HeaderLines = list[tuple[bytes, bytes]]


class Answer(NamedTuple):
    """What a receiver answered: status, header lines as they came, and the beginning of the body."""

    status: int
    headers: HeaderLines
    kept: bytes
    truncated: bool
    is_unasked: bool = False
    """True when it began before anything was sent: it may refuse, and can confirm nothing."""

    @property
    def body(self) -> Body:
        """What is kept of the body, with the charset that the headers name."""
        return Body(self.kept, self.truncated, named_charset(self.header(b"content-type")))

    def header(self, name: bytes) -> str:
        """The first value under a name in lower case; empty when there is none."""
        length = len(name)
        for given, value in self.headers:
            if len(given) == length and given.lower() == name:
                return value.decode("latin-1")
        return ""


class AnswerReader:
    """Reads one answer after the other: `begin`, then `feed` until there is one, or `end` when no more bytes come."""

    def __init__(self) -> None:
        self.received = 0
        """Bytes that came since `begin`."""
        self.status: int | None = None
        """The answer's status, once its head is there; interim answers have none."""
        self.is_last = False
        """True when nothing that comes after can be told apart: the answer ends with the connection, or says that the
        connection ends, or there was something behind it."""
        self._is_complete = False
        self._headers: HeaderLines = []
        self._kept = bytearray()
        self._body: bytes | None = None
        self._body_bytes = 0
        parser = httptools.HttpResponseParser(self)
        # As lenient as aiohttp is with servers that do not quite write HTTP, and no more.
        parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._parser = parser

    def begin(self) -> None:
        """Forgets the last answer."""
        self.received = 0
        self.status = None
        self._is_complete = False
        self._headers = []
        self._body = None
        self._body_bytes = 0

    def feed(self, data: bytes) -> Answer | None:
        """The answer, if `data` brings its end. Raises AnswerNotHttp."""
        self.received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.is_last = True
        except httptools.HttpParserError:
            self.is_last = True
            if not self._is_complete:
                raise AnswerNotHttp from None
        if self._is_complete:
            return self._answer()
        if self.received > (HEAD_BYTES if self.status is None else ANSWER_BYTES):
            raise AnswerNotHttp
        return None

    def end(self, *, in_good_order: bool) -> Answer:
        """The answer whose end is that of the connection. Raises AnswerCut or ConnectionLost when there is none."""
        if self.status is None:
            raise ConnectionLost
        if not in_good_order or _is_framed(self._headers):
            raise AnswerCut
        return self._answer()

    def _answer(self) -> Answer:
        assert self.status is not None
        body = self._body
        if body is None:
            body = bytes(self._kept)
            self._kept.clear()
        return Answer(self.status, self._headers, body[:KEPT_BYTES], self._body_bytes > KEPT_BYTES)

    # --- what the parser calls ---

    def on_message_begin(self) -> None:
        """The first byte of an answer; behind the answer that was asked for, it is one too many."""
        if self._is_complete:
            self.is_last = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header line; or a chunked body's trailer, which says nothing that matters here."""
        if self.status is None:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The end of a head, be it an interim answer's or the answer's own."""
        if self._is_complete:
            return
        headers = self._headers
        if len(headers) > HEADER_LINES or (self.received > HEAD_BYTES and _size(headers) > HEAD_BYTES):
            raise AnswerNotHttp
        status = self._parser.get_status_code()
        if status >= 200 or status == _SWITCHING_PROTOCOLS:
            self.status = status
            if not self._parser.should_keep_alive():
                self.is_last = True
        elif status < 100:
            raise AnswerNotHttp
        else:
            headers.clear()

    def on_body(self, piece: bytes) -> None:
        """Some of the body, without the frames of chunks. A body that comes in one piece is not copied."""
        if self._is_complete:
            return
        if not self._body_bytes:
            self._body = piece
        elif self._body_bytes < KEPT_BYTES:
            if self._body is not None:
                self._kept += self._body
                self._body = None
            self._kept += piece
        self._body_bytes += len(piece)
        if self._body_bytes > KEPT_BYTES + DRAINED_BYTES:
            self._is_complete = self.is_last = True

    def on_message_complete(self) -> None:
        """The end of an answer, be it interim or not."""
        if self.status is not None:
            self._is_complete = True


def _size(headers: HeaderLines) -> int:
    return sum(len(name) + len(value) + len(b": \r\n") for name, value in headers)


def _is_framed(headers: HeaderLines) -> bool:
    """False for an answer whose body ends with its connection: RFC 9112, section 6.3."""
    fields = {name.lower(): value for name, value in headers}
    coding = fields.get(b"transfer-encoding")
    if coding is not None:
        return coding.lower().rstrip().endswith(b"chunked")
    return b"content-length" in fields
