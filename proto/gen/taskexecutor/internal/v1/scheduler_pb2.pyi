import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SchedulerServiceWakeRequest(_message.Message):
    __slots__ = ("due_at",)
    DUE_AT_FIELD_NUMBER: _ClassVar[int]
    due_at: _timestamp_pb2.Timestamp
    def __init__(self, due_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SchedulerServiceWakeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
