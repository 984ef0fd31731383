"""What a job carries, the same for everybody."""

from __future__ import annotations

from typing import Any


def job_input(number: int) -> dict[str, Any]:
    """The input of a job; peers and the raw client send it as it is."""
    return {"order": number, "customer": f"customer-{number % 1000}", "amount": 12.5}
