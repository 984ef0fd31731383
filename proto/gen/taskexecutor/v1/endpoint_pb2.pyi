import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.api import field_behavior_pb2 as _field_behavior_pb2
from google.protobuf import empty_pb2 as _empty_pb2
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

class Endpoint(_message.Message):
    __slots__ = ("name", "type", "payload_spec", "config", "spec", "retry_policy", "revision", "created_at", "updated_at", "flow_control", "flow_state")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        TYPE_UNSPECIFIED: _ClassVar[Endpoint.Type]
        HTTP: _ClassVar[Endpoint.Type]
        KAFKA: _ClassVar[Endpoint.Type]
        REDIS_STREAM: _ClassVar[Endpoint.Type]
    TYPE_UNSPECIFIED: Endpoint.Type
    HTTP: Endpoint.Type
    KAFKA: Endpoint.Type
    REDIS_STREAM: Endpoint.Type
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_SPEC_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    FLOW_CONTROL_FIELD_NUMBER: _ClassVar[int]
    FLOW_STATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: Endpoint.Type
    payload_spec: str
    config: str
    spec: _struct_pb2.Struct
    retry_policy: RetryPolicy
    revision: int
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    flow_control: FlowControl
    flow_state: FlowState
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[Endpoint.Type, str]] = ..., payload_spec: _Optional[str] = ..., config: _Optional[str] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., retry_policy: _Optional[_Union[RetryPolicy, _Mapping]] = ..., revision: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., flow_control: _Optional[_Union[FlowControl, _Mapping]] = ..., flow_state: _Optional[_Union[FlowState, _Mapping]] = ...) -> None: ...

class FlowControl(_message.Message):
    __slots__ = ("max_in_flight", "rate_limit", "circuit_breaker")
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    RATE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    CIRCUIT_BREAKER_FIELD_NUMBER: _ClassVar[int]
    max_in_flight: int
    rate_limit: RateLimit
    circuit_breaker: CircuitBreaker
    def __init__(self, max_in_flight: _Optional[int] = ..., rate_limit: _Optional[_Union[RateLimit, _Mapping]] = ..., circuit_breaker: _Optional[_Union[CircuitBreaker, _Mapping]] = ...) -> None: ...

class RateLimit(_message.Message):
    __slots__ = ("per_second", "burst")
    PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    per_second: float
    burst: int
    def __init__(self, per_second: _Optional[float] = ..., burst: _Optional[int] = ...) -> None: ...

class CircuitBreaker(_message.Message):
    __slots__ = ("failure_rate", "minimum_attempts", "window_sec", "open_sec")
    FAILURE_RATE_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_SEC_FIELD_NUMBER: _ClassVar[int]
    OPEN_SEC_FIELD_NUMBER: _ClassVar[int]
    failure_rate: float
    minimum_attempts: int
    window_sec: int
    open_sec: int
    def __init__(self, failure_rate: _Optional[float] = ..., minimum_attempts: _Optional[int] = ..., window_sec: _Optional[int] = ..., open_sec: _Optional[int] = ...) -> None: ...

class FlowState(_message.Message):
    __slots__ = ("paused_at", "in_flight", "circuit", "closed_until", "closed_by")
    class Circuit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CIRCUIT_UNSPECIFIED: _ClassVar[FlowState.Circuit]
        CLOSED: _ClassVar[FlowState.Circuit]
        OPEN: _ClassVar[FlowState.Circuit]
        HALF_OPEN: _ClassVar[FlowState.Circuit]
    CIRCUIT_UNSPECIFIED: FlowState.Circuit
    CLOSED: FlowState.Circuit
    OPEN: FlowState.Circuit
    HALF_OPEN: FlowState.Circuit
    class ClosedBy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CLOSED_BY_UNSPECIFIED: _ClassVar[FlowState.ClosedBy]
        CIRCUIT: _ClassVar[FlowState.ClosedBy]
        RETRY_AFTER: _ClassVar[FlowState.ClosedBy]
    CLOSED_BY_UNSPECIFIED: FlowState.ClosedBy
    CIRCUIT: FlowState.ClosedBy
    RETRY_AFTER: FlowState.ClosedBy
    PAUSED_AT_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    CIRCUIT_FIELD_NUMBER: _ClassVar[int]
    CLOSED_UNTIL_FIELD_NUMBER: _ClassVar[int]
    CLOSED_BY_FIELD_NUMBER: _ClassVar[int]
    paused_at: _timestamp_pb2.Timestamp
    in_flight: int
    circuit: FlowState.Circuit
    closed_until: _timestamp_pb2.Timestamp
    closed_by: FlowState.ClosedBy
    def __init__(self, paused_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., in_flight: _Optional[int] = ..., circuit: _Optional[_Union[FlowState.Circuit, str]] = ..., closed_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., closed_by: _Optional[_Union[FlowState.ClosedBy, str]] = ...) -> None: ...

class RetryPolicy(_message.Message):
    __slots__ = ("max_attempts", "backoff", "initial_delay_ms", "max_delay_ms", "non_retryable_status_codes")
    class Backoff(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BACKOFF_UNSPECIFIED: _ClassVar[RetryPolicy.Backoff]
        fixed: _ClassVar[RetryPolicy.Backoff]
        linear: _ClassVar[RetryPolicy.Backoff]
        exponential: _ClassVar[RetryPolicy.Backoff]
    BACKOFF_UNSPECIFIED: RetryPolicy.Backoff
    fixed: RetryPolicy.Backoff
    linear: RetryPolicy.Backoff
    exponential: RetryPolicy.Backoff
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    INITIAL_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    NON_RETRYABLE_STATUS_CODES_FIELD_NUMBER: _ClassVar[int]
    max_attempts: int
    backoff: RetryPolicy.Backoff
    initial_delay_ms: int
    max_delay_ms: int
    non_retryable_status_codes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, max_attempts: _Optional[int] = ..., backoff: _Optional[_Union[RetryPolicy.Backoff, str]] = ..., initial_delay_ms: _Optional[int] = ..., max_delay_ms: _Optional[int] = ..., non_retryable_status_codes: _Optional[_Iterable[int]] = ...) -> None: ...

class EndpointRevision(_message.Message):
    __slots__ = ("name", "revision", "payload_spec", "config", "spec", "retry_policy", "created_at")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_SPEC_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    name: str
    revision: int
    payload_spec: str
    config: str
    spec: _struct_pb2.Struct
    retry_policy: RetryPolicy
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., revision: _Optional[int] = ..., payload_spec: _Optional[str] = ..., config: _Optional[str] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., retry_policy: _Optional[_Union[RetryPolicy, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateEndpointRequest(_message.Message):
    __slots__ = ("name", "type", "payload_spec", "config", "spec", "retry_policy", "flow_control")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_SPEC_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    FLOW_CONTROL_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: Endpoint.Type
    payload_spec: str
    config: str
    spec: _struct_pb2.Struct
    retry_policy: RetryPolicy
    flow_control: FlowControl
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[Endpoint.Type, str]] = ..., payload_spec: _Optional[str] = ..., config: _Optional[str] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., retry_policy: _Optional[_Union[RetryPolicy, _Mapping]] = ..., flow_control: _Optional[_Union[FlowControl, _Mapping]] = ...) -> None: ...

class ListEndpointsRequest(_message.Message):
    __slots__ = ("limit", "cursor", "type")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    limit: int
    cursor: str
    type: Endpoint.Type
    def __init__(self, limit: _Optional[int] = ..., cursor: _Optional[str] = ..., type: _Optional[_Union[Endpoint.Type, str]] = ...) -> None: ...

class ListEndpointsResponse(_message.Message):
    __slots__ = ("items", "cursor")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Endpoint]
    cursor: str
    def __init__(self, items: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ..., cursor: _Optional[str] = ...) -> None: ...

class GetEndpointRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class UpdateEndpointRequest(_message.Message):
    __slots__ = ("name", "type", "payload_spec", "config", "spec", "retry_policy", "flow_control")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_SPEC_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    FLOW_CONTROL_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: Endpoint.Type
    payload_spec: str
    config: str
    spec: _struct_pb2.Struct
    retry_policy: RetryPolicy
    flow_control: FlowControl
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[Endpoint.Type, str]] = ..., payload_spec: _Optional[str] = ..., config: _Optional[str] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., retry_policy: _Optional[_Union[RetryPolicy, _Mapping]] = ..., flow_control: _Optional[_Union[FlowControl, _Mapping]] = ...) -> None: ...

class DeleteEndpointRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class PauseEndpointRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ResumeEndpointRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListEndpointRevisionsRequest(_message.Message):
    __slots__ = ("name", "limit", "cursor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    limit: int
    cursor: str
    def __init__(self, name: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListEndpointRevisionsResponse(_message.Message):
    __slots__ = ("items", "cursor")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[EndpointRevision]
    cursor: str
    def __init__(self, items: _Optional[_Iterable[_Union[EndpointRevision, _Mapping]]] = ..., cursor: _Optional[str] = ...) -> None: ...

class RenderEndpointRequest(_message.Message):
    __slots__ = ("name", "input")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    name: str
    input: _struct_pb2.Struct
    def __init__(self, name: _Optional[str] = ..., input: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class RenderEndpointResponse(_message.Message):
    __slots__ = ("type", "revision", "rendered")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    RENDERED_FIELD_NUMBER: _ClassVar[int]
    type: Endpoint.Type
    revision: int
    rendered: _struct_pb2.Struct
    def __init__(self, type: _Optional[_Union[Endpoint.Type, str]] = ..., revision: _Optional[int] = ..., rendered: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class TestEndpointRequest(_message.Message):
    __slots__ = ("name", "input")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    name: str
    input: _struct_pb2.Struct
    def __init__(self, name: _Optional[str] = ..., input: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class TestEndpointResponse(_message.Message):
    __slots__ = ("rendered", "status", "output", "error", "duration_ms")
    RENDERED_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    rendered: _struct_pb2.Struct
    status: _execution_pb2.Attempt.Status
    output: _struct_pb2.Struct
    error: _execution_pb2.AttemptError
    duration_ms: int
    def __init__(self, rendered: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., status: _Optional[_Union[_execution_pb2.Attempt.Status, str]] = ..., output: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., error: _Optional[_Union[_execution_pb2.AttemptError, _Mapping]] = ..., duration_ms: _Optional[int] = ...) -> None: ...
