"""The protocol behind which every endpoint type sends."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from taskexecutor_common.endpoint_types.base import DeliveryIdentity

RequestT_contra = TypeVar("RequestT_contra", contravariant=True)


_RECEIVERS_FAULTS = frozenset({"BROKER_ERROR", "CONNECTION_ERROR", "HTTP_ERROR", "STREAM_ERROR", "TIMEOUT"})

_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class DeliveryError:
    """Why a delivery failed; `type` is one of AttemptError.type of the contract."""

    type: str
    message: str
    status_code: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The form that is stored and shown."""
        error: dict[str, Any] = {"type": self.type}
        if self.status_code is not None:
            error["status_code"] = self.status_code
        error["message"] = self.message
        return error


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended. `retry_after_ms` is what the receiver asked for, unbounded.

    `was_begun` False: nothing was sent, for a reason of our own that passes. Such an attempt does not count.
    """

    output: dict[str, Any] | None = None
    error: DeliveryError | None = None
    retryable: bool = True
    retry_after_ms: int | None = None
    was_begun: bool = True

    @property
    def succeeded(self) -> bool:
        """True when the target took it."""
        return self.error is None

    @property
    def is_receivers_fault(self) -> bool:
        """True when the target was asked and failed, rather than the request or this process."""
        return self.error is not None and self.error.type in _RECEIVERS_FAULTS


def own_shortage(cause: object) -> Outcome | None:
    """The outcome when this machine had no file or memory left for a connection; None when that is not what `cause` says."""
    if not isinstance(cause, OSError) or cause.errno not in _SHORTAGES:
        return None
    error = DeliveryError("INTERNAL_ERROR", f"the dispatcher could not open a connection: {os.strerror(cause.errno)}")
    return Outcome(error=error, was_begun=False)


class Transport(Protocol, Generic[RequestT_contra]):
    """Sends rendered requests of one endpoint type. One instance per process, shared by all deliveries."""

    async def deliver(self, request: RequestT_contra, identity: DeliveryIdentity, timeout_ms: int) -> Outcome:
        """Sends once and waits for the answer, `timeout_ms` at most. Never raises for what the target does:
        that is an Outcome. Cancelling it closes what it holds."""

    async def close(self) -> None:
        """Closes all connections; in-flight deliveries fail."""
