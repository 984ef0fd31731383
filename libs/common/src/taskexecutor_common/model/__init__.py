"""Frozen dataclasses, enums and the state machine; no I/O, no protobuf, no SQL."""
