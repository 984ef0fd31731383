"""The loops of a scheduler on a test's database."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from taskexecutor_scheduler.cron_ticker import CronTicker
from taskexecutor_scheduler.promoter import Promoter
from tests.support.engine import Engine
from tests.support.hints import HintedQueues

INTERVAL_SEC = 60.0  # so that what happens sooner was not the interval's doing
AHEAD_SEC = 20.0


def lanes_of(engine: Engine) -> range:
    """Two at least: some tests put things into the second."""
    return range(max(2, len(engine.lanes)))


@pytest.fixture
def hinted() -> HintedQueues:
    """What the dispatchers were told."""
    return HintedQueues()


@pytest.fixture
def make_promoter(engine: Engine, hinted: HintedQueues) -> Callable[[], Promoter]:
    return lambda: Promoter(engine.timers, lanes=lanes_of(engine), wake_queues=hinted, interval_sec=INTERVAL_SEC)


@pytest.fixture
def promoter(make_promoter: Callable[[], Promoter]) -> Promoter:
    return make_promoter()


@pytest.fixture
def promoter_ahead(engine: Engine, hinted: HintedQueues) -> Promoter:
    return Promoter(
        engine.timers,
        lanes=lanes_of(engine),
        wake_queues=hinted,
        interval_sec=INTERVAL_SEC,
        ahead_ms=round(AHEAD_SEC * 1000),
    )


@pytest.fixture
def make_ticker(engine: Engine, hinted: HintedQueues) -> Callable[..., CronTicker]:
    return lambda batch=50: CronTicker(
        engine.timers,
        lanes=lanes_of(engine),
        new_id=engine.new_id,
        wake_queues=hinted,
        interval_sec=INTERVAL_SEC,
        batch=batch,
        grace_sec=10.0,
    )


@pytest.fixture
def ticker(make_ticker: Callable[..., CronTicker]) -> CronTicker:
    return make_ticker()
