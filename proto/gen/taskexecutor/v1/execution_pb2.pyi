import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.api import field_behavior_pb2 as _field_behavior_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Execution(_message.Message):
    __slots__ = ("execution_id", "job_id", "endpoint", "endpoint_type", "idempotency_key", "status", "input", "output", "error", "attempt_count", "max_attempts", "run_at", "started_at", "completed_at", "duration_ms", "created_at")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNSPECIFIED: _ClassVar[Execution.Status]
        PENDING: _ClassVar[Execution.Status]
        QUEUED: _ClassVar[Execution.Status]
        RUNNING: _ClassVar[Execution.Status]
        RETRYING: _ClassVar[Execution.Status]
        SUCCESS: _ClassVar[Execution.Status]
        FAILED: _ClassVar[Execution.Status]
        CANCELLED: _ClassVar[Execution.Status]
    STATUS_UNSPECIFIED: Execution.Status
    PENDING: Execution.Status
    QUEUED: Execution.Status
    RUNNING: Execution.Status
    RETRYING: Execution.Status
    SUCCESS: Execution.Status
    FAILED: Execution.Status
    CANCELLED: Execution.Status
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_TYPE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_COUNT_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    RUN_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    execution_id: str
    job_id: str
    endpoint: str
    endpoint_type: str
    idempotency_key: str
    status: Execution.Status
    input: _struct_pb2.Struct
    output: _struct_pb2.Struct
    error: AttemptError
    attempt_count: int
    max_attempts: int
    run_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    completed_at: _timestamp_pb2.Timestamp
    duration_ms: int
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, execution_id: _Optional[str] = ..., job_id: _Optional[str] = ..., endpoint: _Optional[str] = ..., endpoint_type: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., status: _Optional[_Union[Execution.Status, str]] = ..., input: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., output: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., error: _Optional[_Union[AttemptError, _Mapping]] = ..., attempt_count: _Optional[int] = ..., max_attempts: _Optional[int] = ..., run_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., completed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., duration_ms: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("execution_id", "attempt_number", "status", "started_at", "completed_at", "duration_ms", "output", "error")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNSPECIFIED: _ClassVar[Attempt.Status]
        SUCCESS: _ClassVar[Attempt.Status]
        FAILED: _ClassVar[Attempt.Status]
    STATUS_UNSPECIFIED: Attempt.Status
    SUCCESS: Attempt.Status
    FAILED: Attempt.Status
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    execution_id: str
    attempt_number: int
    status: Attempt.Status
    started_at: _timestamp_pb2.Timestamp
    completed_at: _timestamp_pb2.Timestamp
    duration_ms: int
    output: _struct_pb2.Struct
    error: AttemptError
    def __init__(self, execution_id: _Optional[str] = ..., attempt_number: _Optional[int] = ..., status: _Optional[_Union[Attempt.Status, str]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., completed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., duration_ms: _Optional[int] = ..., output: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., error: _Optional[_Union[AttemptError, _Mapping]] = ...) -> None: ...

class AttemptError(_message.Message):
    __slots__ = ("type", "status_code", "message")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    type: str
    status_code: int
    message: str
    def __init__(self, type: _Optional[str] = ..., status_code: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class ExecutionLog(_message.Message):
    __slots__ = ("attempt_number", "level", "message", "logged_at")
    class Level(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        LEVEL_UNSPECIFIED: _ClassVar[ExecutionLog.Level]
        DEBUG: _ClassVar[ExecutionLog.Level]
        INFO: _ClassVar[ExecutionLog.Level]
        WARN: _ClassVar[ExecutionLog.Level]
        ERROR: _ClassVar[ExecutionLog.Level]
    LEVEL_UNSPECIFIED: ExecutionLog.Level
    DEBUG: ExecutionLog.Level
    INFO: ExecutionLog.Level
    WARN: ExecutionLog.Level
    ERROR: ExecutionLog.Level
    ATTEMPT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    LOGGED_AT_FIELD_NUMBER: _ClassVar[int]
    attempt_number: int
    level: ExecutionLog.Level
    message: str
    logged_at: _timestamp_pb2.Timestamp
    def __init__(self, attempt_number: _Optional[int] = ..., level: _Optional[_Union[ExecutionLog.Level, str]] = ..., message: _Optional[str] = ..., logged_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetExecutionRequest(_message.Message):
    __slots__ = ("execution_id",)
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    execution_id: str
    def __init__(self, execution_id: _Optional[str] = ...) -> None: ...

class CancelExecutionRequest(_message.Message):
    __slots__ = ("execution_id",)
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    execution_id: str
    def __init__(self, execution_id: _Optional[str] = ...) -> None: ...

class ListAttemptsRequest(_message.Message):
    __slots__ = ("execution_id", "limit", "cursor")
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    execution_id: str
    limit: int
    cursor: str
    def __init__(self, execution_id: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListAttemptsResponse(_message.Message):
    __slots__ = ("items", "cursor")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Attempt]
    cursor: str
    def __init__(self, items: _Optional[_Iterable[_Union[Attempt, _Mapping]]] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListExecutionLogsRequest(_message.Message):
    __slots__ = ("execution_id", "limit", "cursor")
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    execution_id: str
    limit: int
    cursor: str
    def __init__(self, execution_id: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListExecutionLogsResponse(_message.Message):
    __slots__ = ("items", "cursor")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ExecutionLog]
    cursor: str
    def __init__(self, items: _Optional[_Iterable[_Union[ExecutionLog, _Mapping]]] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListJobExecutionsRequest(_message.Message):
    __slots__ = ("job_id", "limit", "cursor", "status")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    limit: int
    cursor: str
    status: Execution.Status
    def __init__(self, job_id: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ..., status: _Optional[_Union[Execution.Status, str]] = ...) -> None: ...

class ListJobExecutionsResponse(_message.Message):
    __slots__ = ("items", "cursor")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Execution]
    cursor: str
    def __init__(self, items: _Optional[_Iterable[_Union[Execution, _Mapping]]] = ..., cursor: _Optional[str] = ...) -> None: ...
