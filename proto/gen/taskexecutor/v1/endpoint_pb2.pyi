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
    __slots__ = ("name", "type", "payload_spec", "config", "spec", "retry_policy", "revision", "created_at", "updated_at")
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
    name: str
    type: Endpoint.Type
    payload_spec: str
    config: str
    spec: _struct_pb2.Struct
    retry_policy: RetryPolicy
    revision: int
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[Endpoint.Type, str]] = ..., payload_spec: _Optional[str] = ..., config: _Optional[str] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., retry_policy: _Optional[_Union[RetryPolicy, _Mapping]] = ..., revision: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("name", "type", "payload_spec", "config", "spec", "retry_policy")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_SPEC_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: Endpoint.Type
    payload_spec: str
    config: str
    spec: _struct_pb2.Struct
    retry_policy: RetryPolicy
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[Endpoint.Type, str]] = ..., payload_spec: _Optional[str] = ..., config: _Optional[str] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., retry_policy: _Optional[_Union[RetryPolicy, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("name", "type", "payload_spec", "config", "spec", "retry_policy")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_SPEC_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: Endpoint.Type
    payload_spec: str
    config: str
    spec: _struct_pb2.Struct
    retry_policy: RetryPolicy
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[Endpoint.Type, str]] = ..., payload_spec: _Optional[str] = ..., config: _Optional[str] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., retry_policy: _Optional[_Union[RetryPolicy, _Mapping]] = ...) -> None: ...

class DeleteEndpointRequest(_message.Message):
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
