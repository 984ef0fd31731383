"""What a Redis delivery says when it failed: Redis's own words, or ours where it said nothing. Never a password."""

from __future__ import annotations

import os
import socket
import ssl

from redis.exceptions import InvalidResponse, RedisError, ResponseError

from taskexecutor_common.egress import AddressRefused
from taskexecutor_common.masking import CUT, Mask
from taskexecutor_dispatcher.endpoints.base import DeliveryError, Outcome, own_shortage
from taskexecutor_dispatcher.endpoints.redis_connections import NotConnected
from taskexecutor_dispatcher.endpoints.redis_urls import RedisServer

# Answers that the same command gets again, however long one waits, until somebody changes the stream or the rights.
_LASTING = ("WRONGTYPE ", "NOPERM ", "DENIED ", "CROSSSLOT ")
_LASTING_FAULTS = (
    "unknown command",
    "wrong number of arguments",
    "syntax error",
    "invalid DB index",
    "DB index is out of range",
    "SELECT is not allowed in cluster mode",
    "The stream has exhausted",
)
_LONGEST = 200


def invalid_destination(message: str) -> Outcome:
    """The entry cannot be added as it is, now or later."""
    return Outcome(error=DeliveryError("INVALID_DESTINATION", message), retryable=False)


def connection_error(message: str) -> Outcome:
    """The connection did not come about or did not last."""
    return Outcome(error=DeliveryError("CONNECTION_ERROR", message))


def timed_out(what_is_missing: str, timeout_ms: int) -> Outcome:
    """The attempt's time was up."""
    return Outcome(error=DeliveryError("TIMEOUT", f"{what_is_missing} within {timeout_ms} ms."))


def not_redis(server: RedisServer) -> Outcome:
    """Something answered, and it was not Redis."""
    return connection_error(f"What {server.place} answers is not the Redis protocol.")


def failed_command(failure: RedisError, server: RedisServer) -> Outcome:
    """The outcome for whatever the library raised while it connected, sent or read."""
    if isinstance(failure.__cause__, NotConnected):
        return _not_connected(failure.__cause__.__cause__, server)
    if answer := _answer(failure):
        return _refused(answer, server)
    if isinstance(failure, InvalidResponse):
        return not_redis(server)
    return connection_error(f"The connection to {server.place} ended before Redis answered.")


def _answer(failure: RedisError) -> str | None:
    """The error that Redis answered, as it was sent; the library cuts off the codes that it knows."""
    if failure.status_code is not None:
        return f"{failure.status_code} {failure}"
    return str(failure) if isinstance(failure, ResponseError) else None


def _refused(answer: str, server: RedisServer) -> Outcome:
    # What follows repeats the command, which an old server does even for AUTH and its password.
    answer = answer.partition(", with args beginning with")[0]
    shown = Mask([server.password] if server.password else []).text(answer)
    if len(shown) > _LONGEST:
        shown = shown[:_LONGEST] + CUT
    error = DeliveryError("STREAM_ERROR", f"Redis answered: {shown}")
    return Outcome(error=error, retryable=not _lasts(answer))


def _lasts(answer: str) -> bool:
    fault = answer.removeprefix("ERR ")
    return answer.startswith(_LASTING) or (fault != answer and fault.startswith(_LASTING_FAULTS))


def _not_connected(cause: BaseException | None, server: RedisServer) -> Outcome:
    if shortage := own_shortage(cause):
        return shortage
    if isinstance(cause, AddressRefused):
        return Outcome(error=DeliveryError("ADDRESS_REFUSED", f"{cause}."), retryable=False)
    if isinstance(cause, socket.gaierror):
        return connection_error(f"{server.place} could not be resolved{_reason(cause.strerror)}.")
    if isinstance(cause, ssl.SSLCertVerificationError):
        return connection_error(f"TLS with {server.place} failed{_reason(cause.verify_message.rstrip('.'))}.")
    if isinstance(cause, ssl.SSLError):
        return connection_error(f"TLS with {server.place} failed{_reason((cause.reason or '').lower())}.")
    number = cause.errno if isinstance(cause, OSError) else None
    return connection_error(f"Could not connect to {server.place}{_reason(os.strerror(number) if number else None)}.")


def _reason(text: str | None) -> str:
    return f": {text[:_LONGEST].replace('_', ' ')}" if text else ""
