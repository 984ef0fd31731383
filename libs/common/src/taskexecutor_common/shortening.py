"""Bounds texts that callers wrote and that stand in errors."""

from __future__ import annotations


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis: `most` characters at the most."""
    return text if len(text) <= most else text[: most - 1] + "…"
