"""What an HTTP delivery says when it failed, in short sentences that show no more of the URL than host and port."""

from __future__ import annotations

import os
import socket
import ssl
from http import HTTPStatus

from taskexecutor_common.egress import AddressRefused
from taskexecutor_dispatcher.endpoints.base import DeliveryError, Outcome, own_shortage
from taskexecutor_dispatcher.endpoints.http_destinations import Origin


class NotConnected(Exception):
    """No connection came about."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause)
        self.cause = cause


class OutOfTime(Exception):
    """The delivery's time was up."""

    def __init__(self, what_is_missing: str) -> None:
        super().__init__(what_is_missing)
        self.what_is_missing = what_is_missing

    @classmethod
    def after_sending(cls, status: int | None) -> OutOfTime:
        """`status` is that of an answer that had begun to come."""
        if status is None:
            return cls("The receiver did not answer")
        return cls(f"The receiver answered {status}, but the answer was not complete")


class ShuttingDown(Exception):
    """The transport was closed."""


class ExchangeFailed(Exception):
    """A connection was there, and no whole answer came over it."""


class ConnectionLost(ExchangeFailed):
    """The connection ended before the head of an answer was there; the receiver may have read the request."""


class NothingAnswered(ConnectionLost):
    """A connection that had carried a request before ended without a byte of an answer to this one."""


class AnswerCut(ExchangeFailed):
    """The connection ended within the body of an answer."""


class AnswerNotHttp(ExchangeFailed):
    """What came is no answer in HTTP/1.x, or one whose head is beyond all measure."""


def invalid_destination(message: str) -> Outcome:
    """The request cannot be sent as it is, now or later."""
    return Outcome(error=DeliveryError("INVALID_DESTINATION", message), retryable=False)


def connection_error(message: str) -> Outcome:
    """The connection did not come about or did not last."""
    return Outcome(error=DeliveryError("CONNECTION_ERROR", message))


def timed_out(what_is_missing: str, timeout_ms: int) -> Outcome:
    """The attempt's time was up."""
    return Outcome(error=DeliveryError("TIMEOUT", f"{what_is_missing} within {timeout_ms} ms."))


def unexpected_status(status: int, *, is_unasked: bool = False) -> DeliveryError:
    """An answer that the endpoint does not count as success, or that came before there was anything to answer."""
    if is_unasked:
        message = f"The receiver answered {status} before it was sent anything."
        return DeliveryError("HTTP_ERROR", message, status_code=status)
    try:
        phrase = f" {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = ""
    return DeliveryError("HTTP_ERROR", f"The receiver answered {status}{phrase}.", status_code=status)


def failed_exchange(failure: ExchangeFailed, origin: Origin) -> Outcome:
    """The outcome when a connection was there and no answer came of it."""
    if isinstance(failure, AnswerCut):
        return connection_error("The connection ended before the answer was complete.")
    if isinstance(failure, AnswerNotHttp):
        return connection_error("The answer is not valid HTTP.")
    return connection_error(f"The connection to {_place(origin)} ended before an answer came.")


def not_connected(failure: NotConnected, origin: Origin) -> Outcome:
    """The outcome when looking up, connecting or TLS failed."""
    cause = failure.cause
    if shortage := own_shortage(cause):
        return shortage
    if isinstance(cause, AddressRefused):
        return Outcome(error=DeliveryError("ADDRESS_REFUSED", f"{cause}."), retryable=False)
    if isinstance(cause, socket.gaierror):
        return connection_error(f"{_host(origin)} could not be resolved{_reason(cause.strerror)}.")
    if isinstance(cause, ssl.SSLError | ssl.CertificateError):
        return connection_error(f"TLS with {_place(origin)} failed{_reason(_tls_reason(cause))}.")
    if origin.scheme == "https" and not cause.errno:  # event loops say so when the other side closes in the middle
        return connection_error(f"TLS with {_place(origin)} failed: the connection was closed.")
    reason = os.strerror(cause.errno) if cause.errno else None
    return connection_error(f"Could not connect to {_place(origin)}{_reason(reason)}.")


def _tls_reason(cause: Exception) -> str | None:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message.rstrip(".")
    reason = getattr(cause, "reason", None)
    return reason.replace("_", " ").lower() if isinstance(reason, str) else None


def _reason(text: str | None) -> str:
    return f": {text[:200]}" if text else ""


def _place(origin: Origin) -> str:
    return f"{_host(origin)}:{origin.port}"


def _host(origin: Origin) -> str:
    return f"[{origin.host}]" if ":" in origin.host else origin.host[:253]
