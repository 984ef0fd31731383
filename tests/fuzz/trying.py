"""Calls that may end in an error of a known kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
ErrorT = TypeVar("ErrorT", bound=Exception)


def attempt(call: Callable[[], T], *errors: type[ErrorT]) -> tuple[T, None] | tuple[Any, ErrorT]:
    """What a call returns, and which of these errors it raised instead; any other error is raised."""
    try:
        return call(), None
    except errors as error:
        return None, error
