"""What an HTTP delivery says when it failed, in short sentences that show no more of the URL than host and port."""

from __future__ import annotations

import os
import ssl
from http import HTTPStatus

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientConnectorSSLError,
    ClientPayloadError,
    ClientResponseError,
)
from yarl import URL

from taskexecutor_dispatcher.endpoints.base import DeliveryError, Outcome
from taskexecutor_dispatcher.endpoints.egress import AddressRefused


def invalid_destination(message: str) -> Outcome:
    """The request cannot be sent as it is, now or later."""
    return Outcome(error=DeliveryError("INVALID_DESTINATION", message), retryable=False)


def connection_error(message: str) -> Outcome:
    """The connection did not come about or did not last."""
    return Outcome(error=DeliveryError("CONNECTION_ERROR", message))


def timed_out(what_is_missing: str, timeout_ms: int) -> Outcome:
    """The attempt's time was up."""
    return Outcome(error=DeliveryError("TIMEOUT", f"{what_is_missing} within {timeout_ms} ms."))


def unexpected_status(status: int) -> DeliveryError:
    """An answer that the endpoint does not count as success."""
    try:
        phrase = f" {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = ""
    return DeliveryError("HTTP_ERROR", f"The receiver answered {status}{phrase}.", status_code=status)


def failed_exchange(failure: Exception, url: URL) -> Outcome:
    """The outcome for whatever the client raised while it connected, sent or read."""
    if isinstance(failure, ClientConnectorError):
        return _not_connected(failure, url)
    if isinstance(failure, ClientPayloadError):
        return connection_error("The connection ended before the answer was complete.")
    if isinstance(failure, ClientResponseError):
        return connection_error("The answer is not valid HTTP.")
    return connection_error(f"The connection to {_place(url)} ended before an answer came.")


def _not_connected(failure: ClientConnectorError, url: URL) -> Outcome:
    cause = failure.os_error
    if isinstance(cause, AddressRefused):
        return Outcome(error=DeliveryError("ADDRESS_REFUSED", f"{cause}."), retryable=False)
    if isinstance(failure, ClientConnectorDNSError):
        return connection_error(f"{_host(url)} could not be resolved{_reason(cause.strerror)}.")
    if isinstance(failure, ClientConnectorCertificateError | ClientConnectorSSLError):
        return connection_error(f"TLS with {_place(url)} failed{_reason(_tls_reason(failure))}.")
    return connection_error(
        f"Could not connect to {_place(url)}{_reason(os.strerror(cause.errno) if cause.errno else None)}."
    )


def _tls_reason(failure: ClientConnectorError) -> str | None:
    cause = failure.certificate_error if isinstance(failure, ClientConnectorCertificateError) else failure.os_error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message.rstrip(".")
    reason = getattr(cause, "reason", None)
    return reason.replace("_", " ").lower() if isinstance(reason, str) else None


def _reason(text: str | None) -> str:
    return f": {text[:200]}" if text else ""


def _place(url: URL) -> str:
    return f"{_host(url)}:{url.port}"


def _host(url: URL) -> str:
    return (url.host_subcomponent or "")[:253]
