from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorCode(_message.Message):
    __slots__ = ()
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VALUE_UNSPECIFIED: _ClassVar[ErrorCode.Value]
        INVALID_REQUEST: _ClassVar[ErrorCode.Value]
        UNAUTHORIZED: _ClassVar[ErrorCode.Value]
        FORBIDDEN: _ClassVar[ErrorCode.Value]
        NOT_FOUND: _ClassVar[ErrorCode.Value]
        PAYLOAD_SPEC_NOT_FOUND: _ClassVar[ErrorCode.Value]
        CONFIG_NOT_FOUND: _ClassVar[ErrorCode.Value]
        SECRET_NOT_FOUND: _ClassVar[ErrorCode.Value]
        ENDPOINT_NOT_FOUND: _ClassVar[ErrorCode.Value]
        JOB_NOT_FOUND: _ClassVar[ErrorCode.Value]
        EXECUTION_NOT_FOUND: _ClassVar[ErrorCode.Value]
        METHOD_NOT_ALLOWED: _ClassVar[ErrorCode.Value]
        CONFLICT: _ClassVar[ErrorCode.Value]
        JOB_NOT_UPDATABLE: _ClassVar[ErrorCode.Value]
        EXECUTION_NOT_CANCELLABLE: _ClassVar[ErrorCode.Value]
        PAYLOAD_TOO_LARGE: _ClassVar[ErrorCode.Value]
        INVALID_CRON: _ClassVar[ErrorCode.Value]
        INVALID_SCHEMA: _ClassVar[ErrorCode.Value]
        INVALID_PAYLOAD_SPEC_REF: _ClassVar[ErrorCode.Value]
        INVALID_CONFIG_REF: _ClassVar[ErrorCode.Value]
        INPUT_VALIDATION_FAILED: _ClassVar[ErrorCode.Value]
        TEMPLATE_RESOLUTION_FAILED: _ClassVar[ErrorCode.Value]
        RATE_LIMITED: _ClassVar[ErrorCode.Value]
        INTERNAL_ERROR: _ClassVar[ErrorCode.Value]
        UNIMPLEMENTED: _ClassVar[ErrorCode.Value]
        UNAVAILABLE: _ClassVar[ErrorCode.Value]
        DEADLINE_EXCEEDED: _ClassVar[ErrorCode.Value]
        UNSUPPORTED_MEDIA_TYPE: _ClassVar[ErrorCode.Value]
        HEADERS_TOO_LARGE: _ClassVar[ErrorCode.Value]
        API_KEY_NOT_FOUND: _ClassVar[ErrorCode.Value]
    VALUE_UNSPECIFIED: ErrorCode.Value
    INVALID_REQUEST: ErrorCode.Value
    UNAUTHORIZED: ErrorCode.Value
    FORBIDDEN: ErrorCode.Value
    NOT_FOUND: ErrorCode.Value
    PAYLOAD_SPEC_NOT_FOUND: ErrorCode.Value
    CONFIG_NOT_FOUND: ErrorCode.Value
    SECRET_NOT_FOUND: ErrorCode.Value
    ENDPOINT_NOT_FOUND: ErrorCode.Value
    JOB_NOT_FOUND: ErrorCode.Value
    EXECUTION_NOT_FOUND: ErrorCode.Value
    METHOD_NOT_ALLOWED: ErrorCode.Value
    CONFLICT: ErrorCode.Value
    JOB_NOT_UPDATABLE: ErrorCode.Value
    EXECUTION_NOT_CANCELLABLE: ErrorCode.Value
    PAYLOAD_TOO_LARGE: ErrorCode.Value
    INVALID_CRON: ErrorCode.Value
    INVALID_SCHEMA: ErrorCode.Value
    INVALID_PAYLOAD_SPEC_REF: ErrorCode.Value
    INVALID_CONFIG_REF: ErrorCode.Value
    INPUT_VALIDATION_FAILED: ErrorCode.Value
    TEMPLATE_RESOLUTION_FAILED: ErrorCode.Value
    RATE_LIMITED: ErrorCode.Value
    INTERNAL_ERROR: ErrorCode.Value
    UNIMPLEMENTED: ErrorCode.Value
    UNAVAILABLE: ErrorCode.Value
    DEADLINE_EXCEEDED: ErrorCode.Value
    UNSUPPORTED_MEDIA_TYPE: ErrorCode.Value
    HEADERS_TOO_LARGE: ErrorCode.Value
    API_KEY_NOT_FOUND: ErrorCode.Value
    def __init__(self) -> None: ...
