"""Logs: JSON lines for machines, text for a terminal, always with the ids of what is going on."""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal

import orjson
import structlog
from structlog.contextvars import bind_contextvars, bound_contextvars, merge_contextvars

__all__ = ["bind_contextvars", "bound_contextvars", "configure", "get_logger"]


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger whose lines name the part of the service they come from."""
    logger: structlog.stdlib.BoundLogger = structlog.get_logger(part=name)
    return logger


def _to_json(event: dict[str, Any], **options: Any) -> str:
    return orjson.dumps(event, default=options.get("default")).decode()


def configure(service: str, *, log_format: Literal["auto", "json", "text"], level: str) -> None:
    """Sets up logging of the whole process, that of libraries included; lines go to standard output."""
    as_text = log_format == "text" or (log_format == "auto" and sys.stdout.isatty())
    shared: list[structlog.typing.Processor] = [
        merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=sys.stdout.isatty())
        if as_text
        else structlog.processors.JSONRenderer(serializer=_to_json)
    )
    number = getattr(logging, level)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING), force=True)
    bind_contextvars(service=service)
