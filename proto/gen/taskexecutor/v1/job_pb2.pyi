import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.api import field_behavior_pb2 as _field_behavior_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from taskexecutor.v1 import execution_pb2 as _execution_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Job(_message.Message):
    __slots__ = ("job_id", "endpoint", "endpoint_type", "trigger", "status", "version", "previous_version_id", "replaced_by_id", "idempotency_key", "input", "run_at", "cron", "timezone", "starts_at", "ends_at", "next_run_at", "last_tick_at", "catch_up", "paused_at", "execution", "deduplicated", "endpoint_revision", "created_at", "retired_at", "request_id")
    class Trigger(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        TRIGGER_UNSPECIFIED: _ClassVar[Job.Trigger]
        IMMEDIATE: _ClassVar[Job.Trigger]
        DELAYED: _ClassVar[Job.Trigger]
        CRON: _ClassVar[Job.Trigger]
    TRIGGER_UNSPECIFIED: Job.Trigger
    IMMEDIATE: Job.Trigger
    DELAYED: Job.Trigger
    CRON: Job.Trigger
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNSPECIFIED: _ClassVar[Job.Status]
        ACTIVE: _ClassVar[Job.Status]
        RETIRED: _ClassVar[Job.Status]
    STATUS_UNSPECIFIED: Job.Status
    ACTIVE: Job.Status
    RETIRED: Job.Status
    class CatchUp(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CATCH_UP_UNSPECIFIED: _ClassVar[Job.CatchUp]
        ALL: _ClassVar[Job.CatchUp]
        LATEST: _ClassVar[Job.CatchUp]
        NONE: _ClassVar[Job.CatchUp]
    CATCH_UP_UNSPECIFIED: Job.CatchUp
    ALL: Job.CatchUp
    LATEST: Job.CatchUp
    NONE: Job.CatchUp
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_TYPE_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_VERSION_ID_FIELD_NUMBER: _ClassVar[int]
    REPLACED_BY_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    RUN_AT_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    STARTS_AT_FIELD_NUMBER: _ClassVar[int]
    ENDS_AT_FIELD_NUMBER: _ClassVar[int]
    NEXT_RUN_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_TICK_AT_FIELD_NUMBER: _ClassVar[int]
    CATCH_UP_FIELD_NUMBER: _ClassVar[int]
    PAUSED_AT_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    DEDUPLICATED_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_REVISION_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    RETIRED_AT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    endpoint: str
    endpoint_type: str
    trigger: Job.Trigger
    status: Job.Status
    version: int
    previous_version_id: str
    replaced_by_id: str
    idempotency_key: str
    input: _struct_pb2.Struct
    run_at: _timestamp_pb2.Timestamp
    cron: str
    timezone: str
    starts_at: _timestamp_pb2.Timestamp
    ends_at: _timestamp_pb2.Timestamp
    next_run_at: _timestamp_pb2.Timestamp
    last_tick_at: _timestamp_pb2.Timestamp
    catch_up: Job.CatchUp
    paused_at: _timestamp_pb2.Timestamp
    execution: ExecutionSummary
    deduplicated: bool
    endpoint_revision: int
    created_at: _timestamp_pb2.Timestamp
    retired_at: _timestamp_pb2.Timestamp
    request_id: str
    def __init__(self, job_id: _Optional[str] = ..., endpoint: _Optional[str] = ..., endpoint_type: _Optional[str] = ..., trigger: _Optional[_Union[Job.Trigger, str]] = ..., status: _Optional[_Union[Job.Status, str]] = ..., version: _Optional[int] = ..., previous_version_id: _Optional[str] = ..., replaced_by_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., input: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., run_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cron: _Optional[str] = ..., timezone: _Optional[str] = ..., starts_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ends_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_run_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_tick_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., catch_up: _Optional[_Union[Job.CatchUp, str]] = ..., paused_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., execution: _Optional[_Union[ExecutionSummary, _Mapping]] = ..., deduplicated: _Optional[bool] = ..., endpoint_revision: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., retired_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ExecutionSummary(_message.Message):
    __slots__ = ("execution_id", "status", "created_at")
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    execution_id: str
    status: _execution_pb2.Execution.Status
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, execution_id: _Optional[str] = ..., status: _Optional[_Union[_execution_pb2.Execution.Status, str]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class JobStatus(_message.Message):
    __slots__ = ("job_id", "endpoint", "endpoint_type", "trigger", "health", "version", "last_execution", "active_executions", "cron", "stats")
    class Health(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        HEALTH_UNSPECIFIED: _ClassVar[JobStatus.Health]
        HEALTHY: _ClassVar[JobStatus.Health]
        DEGRADED: _ClassVar[JobStatus.Health]
        FAILING: _ClassVar[JobStatus.Health]
        IDLE: _ClassVar[JobStatus.Health]
    HEALTH_UNSPECIFIED: JobStatus.Health
    HEALTHY: JobStatus.Health
    DEGRADED: JobStatus.Health
    FAILING: JobStatus.Health
    IDLE: JobStatus.Health
    class LastExecution(_message.Message):
        __slots__ = ("execution_id", "status", "started_at", "completed_at", "attempt_number")
        EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
        STATUS_FIELD_NUMBER: _ClassVar[int]
        STARTED_AT_FIELD_NUMBER: _ClassVar[int]
        COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
        ATTEMPT_NUMBER_FIELD_NUMBER: _ClassVar[int]
        execution_id: str
        status: _execution_pb2.Execution.Status
        started_at: _timestamp_pb2.Timestamp
        completed_at: _timestamp_pb2.Timestamp
        attempt_number: int
        def __init__(self, execution_id: _Optional[str] = ..., status: _Optional[_Union[_execution_pb2.Execution.Status, str]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., completed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempt_number: _Optional[int] = ...) -> None: ...
    class ActiveExecutions(_message.Message):
        __slots__ = ("pending", "running", "total")
        PENDING_FIELD_NUMBER: _ClassVar[int]
        RUNNING_FIELD_NUMBER: _ClassVar[int]
        TOTAL_FIELD_NUMBER: _ClassVar[int]
        pending: int
        running: int
        total: int
        def __init__(self, pending: _Optional[int] = ..., running: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...
    class Cron(_message.Message):
        __slots__ = ("expression", "next_run_at", "last_tick_at")
        EXPRESSION_FIELD_NUMBER: _ClassVar[int]
        NEXT_RUN_AT_FIELD_NUMBER: _ClassVar[int]
        LAST_TICK_AT_FIELD_NUMBER: _ClassVar[int]
        expression: str
        next_run_at: _timestamp_pb2.Timestamp
        last_tick_at: _timestamp_pb2.Timestamp
        def __init__(self, expression: _Optional[str] = ..., next_run_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_tick_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
    class WindowStats(_message.Message):
        __slots__ = ("total", "succeeded", "failed", "avg_duration_ms", "p99_duration_ms")
        TOTAL_FIELD_NUMBER: _ClassVar[int]
        SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
        FAILED_FIELD_NUMBER: _ClassVar[int]
        AVG_DURATION_MS_FIELD_NUMBER: _ClassVar[int]
        P99_DURATION_MS_FIELD_NUMBER: _ClassVar[int]
        total: int
        succeeded: int
        failed: int
        avg_duration_ms: int
        p99_duration_ms: int
        def __init__(self, total: _Optional[int] = ..., succeeded: _Optional[int] = ..., failed: _Optional[int] = ..., avg_duration_ms: _Optional[int] = ..., p99_duration_ms: _Optional[int] = ...) -> None: ...
    class Stats(_message.Message):
        __slots__ = ("last_24h",)
        LAST_24H_FIELD_NUMBER: _ClassVar[int]
        last_24h: JobStatus.WindowStats
        def __init__(self, last_24h: _Optional[_Union[JobStatus.WindowStats, _Mapping]] = ...) -> None: ...
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_TYPE_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LAST_EXECUTION_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_EXECUTIONS_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    endpoint: str
    endpoint_type: str
    trigger: Job.Trigger
    health: JobStatus.Health
    version: int
    last_execution: JobStatus.LastExecution
    active_executions: JobStatus.ActiveExecutions
    cron: JobStatus.Cron
    stats: JobStatus.Stats
    def __init__(self, job_id: _Optional[str] = ..., endpoint: _Optional[str] = ..., endpoint_type: _Optional[str] = ..., trigger: _Optional[_Union[Job.Trigger, str]] = ..., health: _Optional[_Union[JobStatus.Health, str]] = ..., version: _Optional[int] = ..., last_execution: _Optional[_Union[JobStatus.LastExecution, _Mapping]] = ..., active_executions: _Optional[_Union[JobStatus.ActiveExecutions, _Mapping]] = ..., cron: _Optional[_Union[JobStatus.Cron, _Mapping]] = ..., stats: _Optional[_Union[JobStatus.Stats, _Mapping]] = ...) -> None: ...

class CreateJobRequest(_message.Message):
    __slots__ = ("endpoint", "trigger", "idempotency_key", "input", "run_at", "cron", "timezone", "starts_at", "ends_at", "catch_up")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    RUN_AT_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    STARTS_AT_FIELD_NUMBER: _ClassVar[int]
    ENDS_AT_FIELD_NUMBER: _ClassVar[int]
    CATCH_UP_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    trigger: Job.Trigger
    idempotency_key: str
    input: _struct_pb2.Struct
    run_at: _timestamp_pb2.Timestamp
    cron: str
    timezone: str
    starts_at: _timestamp_pb2.Timestamp
    ends_at: _timestamp_pb2.Timestamp
    catch_up: Job.CatchUp
    def __init__(self, endpoint: _Optional[str] = ..., trigger: _Optional[_Union[Job.Trigger, str]] = ..., idempotency_key: _Optional[str] = ..., input: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., run_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cron: _Optional[str] = ..., timezone: _Optional[str] = ..., starts_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ends_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., catch_up: _Optional[_Union[Job.CatchUp, str]] = ...) -> None: ...

class BatchCreateJobsRequest(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[CreateJobRequest]
    def __init__(self, jobs: _Optional[_Iterable[_Union[CreateJobRequest, _Mapping]]] = ...) -> None: ...

class BatchCreateJobsResponse(_message.Message):
    __slots__ = ("items",)
    class Error(_message.Message):
        __slots__ = ("code", "message")
        CODE_FIELD_NUMBER: _ClassVar[int]
        MESSAGE_FIELD_NUMBER: _ClassVar[int]
        code: str
        message: str
        def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...
    class Result(_message.Message):
        __slots__ = ("job", "error")
        JOB_FIELD_NUMBER: _ClassVar[int]
        ERROR_FIELD_NUMBER: _ClassVar[int]
        job: Job
        error: BatchCreateJobsResponse.Error
        def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ..., error: _Optional[_Union[BatchCreateJobsResponse.Error, _Mapping]] = ...) -> None: ...
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[BatchCreateJobsResponse.Result]
    def __init__(self, items: _Optional[_Iterable[_Union[BatchCreateJobsResponse.Result, _Mapping]]] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("limit", "cursor", "endpoint", "trigger", "status")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    limit: int
    cursor: str
    endpoint: str
    trigger: Job.Trigger
    status: Job.Status
    def __init__(self, limit: _Optional[int] = ..., cursor: _Optional[str] = ..., endpoint: _Optional[str] = ..., trigger: _Optional[_Union[Job.Trigger, str]] = ..., status: _Optional[_Union[Job.Status, str]] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("items", "cursor")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Job]
    cursor: str
    def __init__(self, items: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., cursor: _Optional[str] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class UpdateJobRequest(_message.Message):
    __slots__ = ("job_id", "cron", "timezone", "input", "starts_at", "ends_at", "catch_up")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    STARTS_AT_FIELD_NUMBER: _ClassVar[int]
    ENDS_AT_FIELD_NUMBER: _ClassVar[int]
    CATCH_UP_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    cron: str
    timezone: str
    input: _struct_pb2.Struct
    starts_at: _timestamp_pb2.Timestamp
    ends_at: _timestamp_pb2.Timestamp
    catch_up: Job.CatchUp
    def __init__(self, job_id: _Optional[str] = ..., cron: _Optional[str] = ..., timezone: _Optional[str] = ..., input: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., starts_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ends_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., catch_up: _Optional[_Union[Job.CatchUp, str]] = ...) -> None: ...

class CancelJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class GetJobStatusRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class ListJobVersionsRequest(_message.Message):
    __slots__ = ("job_id", "limit", "cursor")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    limit: int
    cursor: str
    def __init__(self, job_id: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListJobVersionsResponse(_message.Message):
    __slots__ = ("items", "cursor")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Job]
    cursor: str
    def __init__(self, items: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., cursor: _Optional[str] = ...) -> None: ...

class PauseJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class ResumeJobRequest(_message.Message):
    __slots__ = ("job_id", "catch_up")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    CATCH_UP_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    catch_up: Job.CatchUp
    def __init__(self, job_id: _Optional[str] = ..., catch_up: _Optional[_Union[Job.CatchUp, str]] = ...) -> None: ...

class PreviewCronRequest(_message.Message):
    __slots__ = ("cron", "timezone", "starts_at", "ends_at", "count")
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    STARTS_AT_FIELD_NUMBER: _ClassVar[int]
    ENDS_AT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    cron: str
    timezone: str
    starts_at: _timestamp_pb2.Timestamp
    ends_at: _timestamp_pb2.Timestamp
    count: int
    def __init__(self, cron: _Optional[str] = ..., timezone: _Optional[str] = ..., starts_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ends_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., count: _Optional[int] = ...) -> None: ...

class PreviewCronResponse(_message.Message):
    __slots__ = ("items",)
    class Firing(_message.Message):
        __slots__ = ("run_at",)
        RUN_AT_FIELD_NUMBER: _ClassVar[int]
        run_at: _timestamp_pb2.Timestamp
        def __init__(self, run_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[PreviewCronResponse.Firing]
    def __init__(self, items: _Optional[_Iterable[_Union[PreviewCronResponse.Firing, _Mapping]]] = ...) -> None: ...
