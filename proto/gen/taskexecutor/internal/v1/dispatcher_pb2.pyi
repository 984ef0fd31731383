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
