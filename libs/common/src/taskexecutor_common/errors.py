"""The errors that callers may tell apart; rpc/status.py is the one place that turns them into statuses.

TaskExecutorError
├── InvalidRequest                     400  a field breaks the contract
├── Unauthorized 401, Forbidden 403
├── NotFound                           404
│   ├── PayloadSpecNotFound, ConfigNotFound, SecretNotFound
│   └── EndpointNotFound, JobNotFound, ExecutionNotFound, ApiKeyNotFound
├── Conflict 409                            the name is taken, or somebody still refers to it
│   └── NameTaken
├── JobNotUpdatable, ExecutionNotCancellable 409
├── Unprocessable                      422
│   ├── InvalidCron, InvalidSchema, InvalidPayloadSpecRef, InvalidConfigRef
│   └── InputValidationFailed, TemplateResolutionFailed
├── RateLimited 429                    with retry_after
├── Unavailable 503                    with retry_after
│   └── AmbiguousResult                     nobody knows whether it was committed
├── NotServed 501
└── InternalError 500                  fixed text, nothing leaks
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class StatusCode(IntEnum):
    """The google.rpc.Code numbers in use; named here so that the model need not import grpc."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


class TaskExecutorError(Exception):
    """Base of all errors a caller may see.

    `reason` is the code of the contract (`ErrorCode` in error.proto), `message` is shown to the caller as it is, so it
    must hold no secret. `field` is the dotted path of the field at fault, `retry_after` is in seconds.
    """

    reason: ClassVar[str] = "INTERNAL_ERROR"
    http_status: ClassVar[int] = 500
    status_code: ClassVar[StatusCode] = StatusCode.INTERNAL

    def __init__(self, message: str, *, field: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.retry_after = retry_after


class InvalidRequest(TaskExecutorError):
    """The request breaks the contract."""

    reason = "INVALID_REQUEST"
    http_status = 400
    status_code = StatusCode.INVALID_ARGUMENT


class Unauthorized(TaskExecutorError):
    """No API key, or one that is unknown, expired or revoked."""

    reason = "UNAUTHORIZED"
    http_status = 401
    status_code = StatusCode.UNAUTHENTICATED


class Forbidden(TaskExecutorError):
    """The key lacks the scope."""

    reason = "FORBIDDEN"
    http_status = 403
    status_code = StatusCode.PERMISSION_DENIED


class NotFound(TaskExecutorError):
    """What was asked for does not exist in the caller's namespace."""

    reason = "NOT_FOUND"
    http_status = 404
    status_code = StatusCode.NOT_FOUND
    kind: ClassVar[str] = "Resource"

    @classmethod
    def named(cls, name: str) -> NotFound:
        """The error for a name or id that is not there."""
        return cls(f"{cls.kind} '{name[:200]}' does not exist.")


class PayloadSpecNotFound(NotFound):
    """No such payload spec."""

    reason = "PAYLOAD_SPEC_NOT_FOUND"
    kind = "Payload spec"


class ConfigNotFound(NotFound):
    """No such config."""

    reason = "CONFIG_NOT_FOUND"
    kind = "Config"


class SecretNotFound(NotFound):
    """No such secret."""

    reason = "SECRET_NOT_FOUND"
    kind = "Secret"


class EndpointNotFound(NotFound):
    """No such endpoint."""

    reason = "ENDPOINT_NOT_FOUND"
    kind = "Endpoint"


class JobNotFound(NotFound):
    """No such job."""

    reason = "JOB_NOT_FOUND"
    kind = "Job"


class ApiKeyNotFound(NotFound):
    """No such API key."""

    reason = "API_KEY_NOT_FOUND"
    kind = "API key"


class ExecutionNotFound(NotFound):
    """No such execution."""

    reason = "EXECUTION_NOT_FOUND"
    kind = "Execution"


class Conflict(TaskExecutorError):
    """Somebody still refers to what was to be deleted or changed."""

    reason = "CONFLICT"
    http_status = 409
    status_code = StatusCode.FAILED_PRECONDITION


class NameTaken(Conflict):
    """The name is in use."""

    status_code = StatusCode.ALREADY_EXISTS


class JobNotUpdatable(TaskExecutorError):
    """One-shot and retired jobs cannot be changed."""

    reason = "JOB_NOT_UPDATABLE"
    http_status = 409
    status_code = StatusCode.FAILED_PRECONDITION


class ExecutionNotCancellable(TaskExecutorError):
    """It runs already, or has ended."""

    reason = "EXECUTION_NOT_CANCELLABLE"
    http_status = 409
    status_code = StatusCode.FAILED_PRECONDITION


class Unprocessable(TaskExecutorError):
    """Well-formed, but it cannot be done."""

    http_status = 422
    status_code = StatusCode.INVALID_ARGUMENT


class InvalidCron(Unprocessable):
    """Bad expression or zone, or one that never fires."""

    reason = "INVALID_CRON"


class InvalidSchema(Unprocessable):
    """Not a JSON Schema."""

    reason = "INVALID_SCHEMA"


class InvalidPayloadSpecRef(Unprocessable):
    """The endpoint names a payload spec that does not exist."""

    reason = "INVALID_PAYLOAD_SPEC_REF"


class InvalidConfigRef(Unprocessable):
    """The endpoint names a config that does not exist."""

    reason = "INVALID_CONFIG_REF"


class InputValidationFailed(Unprocessable):
    """The input breaks the payload spec."""

    reason = "INPUT_VALIDATION_FAILED"


class TemplateResolutionFailed(Unprocessable):
    """A placeholder names what does not exist."""

    reason = "TEMPLATE_RESOLUTION_FAILED"


class RateLimited(TaskExecutorError):
    """The key spends more than its rate."""

    reason = "RATE_LIMITED"
    http_status = 429
    status_code = StatusCode.RESOURCE_EXHAUSTED


class NotServed(TaskExecutorError):
    """In the contract, not in this version."""

    reason = "UNIMPLEMENTED"
    http_status = 501
    status_code = StatusCode.UNIMPLEMENTED


class Unavailable(TaskExecutorError):
    """The database or a service is away; trying again helps."""

    reason = "UNAVAILABLE"
    http_status = 503
    status_code = StatusCode.UNAVAILABLE


class AmbiguousResult(Unavailable):
    """A write whose answer was lost: it may or may not have been committed. Callers who can look for their own write
    settle it; to the others it is a reason to look and try again."""

    def __init__(self, statement: str) -> None:
        super().__init__("the database's answer was lost: it is not known whether the change was made", retry_after=1)
        self.statement = statement


class InternalError(TaskExecutorError):
    """Our fault. The message is the same for all of them; the request id finds the log line."""

    def __init__(self) -> None:
        super().__init__("Something went wrong on our side; the request id finds it in the logs.")
