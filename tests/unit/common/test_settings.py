"""Settings that could be given, but would break a promise."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from taskexecutor_common.config.settings import SchedulerSettings


def test_a_grace_that_no_tick_could_keep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tick is noticed a moment late: without a grace, a job that skips what it missed would never fire."""
    monkeypatch.setenv("TE_DATABASE_URL", "postgresql://nowhere/")
    monkeypatch.setenv("TE_CRON_MISFIRE_GRACE_SEC", "0")
    with pytest.raises(ValidationError, match="cron_misfire_grace_sec"):
        SchedulerSettings()
