"""Wires the scheduler together; the only place that builds its parts."""

from __future__ import annotations

import sys
import uuid
from datetime import datetime

from taskexecutor.internal.v1 import scheduler_pb2_grpc
from taskexecutor_common.clock import Clock
from taskexecutor_common.config.settings import DEAD_AFTER_SEC, HEARTBEAT_INTERVAL_SEC, SchedulerSettings
from taskexecutor_common.ids import LaneIds
from taskexecutor_common.rpc.hints import DispatcherHints
from taskexecutor_common.rpc.server import RpcServer
from taskexecutor_common.rpc.tls import Tls
from taskexecutor_common.runtime.health import HealthMonitor
from taskexecutor_common.runtime.instance import make_heartbeat, reachable_address
from taskexecutor_common.runtime.process import run_process
from taskexecutor_common.runtime.regions import ActiveRegions
from taskexecutor_common.runtime.service import Service, run_services
from taskexecutor_common.store.instances import InstanceStore
from taskexecutor_common.store.opening import OpenDatabase
from taskexecutor_common.store.regions import RegionStore
from taskexecutor_common.store.retention import RetentionStore
from taskexecutor_common.store.timers import TimerStore
from taskexecutor_scheduler.cron_ticker import CronTicker
from taskexecutor_scheduler.promoter import Promoter
from taskexecutor_scheduler.pruner import Pruner
from taskexecutor_scheduler.reclaimer import Reclaimer
from taskexecutor_scheduler.servicer import SchedulerServicer


def build(settings: SchedulerSettings) -> list[Service]:
    """All parts in the order of their start."""
    opened = OpenDatabase(settings, "scheduler", settings.db_pool_size)
    instances = InstanceStore(opened.database, settings.region, int(DEAD_AFTER_SEC * 1000))
    timers = TimerStore(opened.database)
    tls = Tls.of(settings.tls)
    hints = DispatcherHints(lambda: instances.list_live("dispatcher"), tls)
    lanes = range(settings.lanes)
    clock = Clock()
    ids = LaneIds(settings.lanes, clock.epoch_ms)

    promoter = Promoter(
        timers,
        lanes=lanes,
        wake_queues=hints.wake,
        interval_sec=settings.promote_interval_ms / 1000,
        ahead_ms=settings.promote_ahead_ms,
    )
    cron_ticker = CronTicker(
        timers,
        lanes=lanes,
        new_id=lambda: ids.new()[0],
        wake_queues=hints.wake,
        interval_sec=settings.cron_tick_interval_sec,
        batch=settings.cron_batch_size,
        grace_sec=settings.cron_misfire_grace_sec,
    )
    reclaimer = Reclaimer(
        instances,
        wake_queues=hints.wake,
        interval_sec=settings.reclaim_interval_sec,
        calm_sec=HEARTBEAT_INTERVAL_SEC + 1,
        outage_sec=settings.reclaim_interval_sec + DEAD_AFTER_SEC,
    )

    pruner = Pruner(
        RetentionStore(opened.database, int(settings.retention_days * 86_400)),
        lanes=lanes,
        epoch_ms=clock.epoch_ms,
        interval_sec=settings.prune_interval_sec,
    )

    def hint(due_at: datetime | None) -> None:
        promoter.hint(due_at)
        cron_ticker.hint(due_at)

    server = RpcServer(settings.internal_listen_addr, grace_sec=1.0, tls=tls)
    scheduler_pb2_grpc.add_SchedulerServiceServicer_to_server(SchedulerServicer(hint), server.server)
    server.announce("taskexecutor.internal.v1.SchedulerService")
    heartbeat = make_heartbeat(
        instances.beat,
        "scheduler",
        uuid.uuid4(),
        lambda: reachable_address(settings.internal_listen_addr, server.port, settings.advertise_addr),
    )
    regions = ActiveRegions(settings.region, RegionStore(opened.database).list_all)
    loops = [reclaimer.loop, promoter.loop, cron_ticker.loop, pruner.loop, regions.loop]
    health = HealthMonitor(
        server.set_serving, {"database": heartbeat.problem} | {loop.name: loop.problem for loop in loops}
    )
    return [opened, hints, server, heartbeat, *loops, health]


async def serve(settings: SchedulerSettings) -> None:
    """Runs until a signal."""
    await run_services(build(settings))


def main() -> int:
    """Entry point of `taskexecutor-scheduler`."""
    return run_process("scheduler", SchedulerSettings, serve)


if __name__ == "__main__":
    sys.exit(main())
