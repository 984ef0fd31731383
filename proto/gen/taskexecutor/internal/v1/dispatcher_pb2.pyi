from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class DispatcherServiceWakeRequest(_message.Message):
    __slots__ = ("queues",)
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, queues: _Optional[_Iterable[bytes]] = ...) -> None: ...

class DispatcherServiceWakeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DispatcherServiceForgetSecretRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class DispatcherServiceForgetSecretResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DispatcherServiceSendOnceRequest(_message.Message):
    __slots__ = ("endpoint_id", "revision", "namespace", "config_revision_id", "input_json")
    ENDPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_REVISION_ID_FIELD_NUMBER: _ClassVar[int]
    INPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    endpoint_id: bytes
    revision: int
    namespace: str
    config_revision_id: bytes
    input_json: str
    def __init__(self, endpoint_id: _Optional[bytes] = ..., revision: _Optional[int] = ..., namespace: _Optional[str] = ..., config_revision_id: _Optional[bytes] = ..., input_json: _Optional[str] = ...) -> None: ...

class DispatcherServiceSendOnceResponse(_message.Message):
    __slots__ = ("output_json", "error_json", "duration_ms")
    OUTPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    ERROR_JSON_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    output_json: str
    error_json: str
    duration_ms: int
    def __init__(self, output_json: _Optional[str] = ..., error_json: _Optional[str] = ..., duration_ms: _Optional[int] = ...) -> None: ...
