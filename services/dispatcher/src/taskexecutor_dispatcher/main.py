"""Wires the dispatcher together; the only place that builds its parts."""

from __future__ import annotations

import sys
import uuid
from typing import Any

from taskexecutor.internal.v1 import dispatcher_pb2_grpc
from taskexecutor_common.clock import Clock
from taskexecutor_common.config.settings import DEAD_AFTER_SEC, DispatcherSettings
from taskexecutor_common.crypto import KeyRing
from taskexecutor_common.egress import EgressPolicy
from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.rpc.hints import SchedulerHints
from taskexecutor_common.rpc.server import RpcServer
from taskexecutor_common.rpc.tls import Tls
from taskexecutor_common.runtime.health import HealthMonitor
from taskexecutor_common.runtime.instance import make_heartbeat, reachable_address
from taskexecutor_common.runtime.process import run_process
from taskexecutor_common.runtime.regions import ActiveRegions
from taskexecutor_common.runtime.service import Service, run_services
from taskexecutor_common.store.endpoints import EndpointStore
from taskexecutor_common.store.instances import InstanceStore
from taskexecutor_common.store.opening import OpenDatabase
from taskexecutor_common.store.queue import QueueStore
from taskexecutor_common.store.regions import RegionStore
from taskexecutor_common.store.setup import SetupStore
from taskexecutor_dispatcher.claimer import Claimer
from taskexecutor_dispatcher.completer import Completer
from taskexecutor_dispatcher.delivery import Delivery
from taskexecutor_dispatcher.endpoints.base import Transport
from taskexecutor_dispatcher.endpoints.http import HttpTransport
from taskexecutor_dispatcher.endpoints.http_aiohttp import AiohttpTransport
from taskexecutor_dispatcher.endpoints.kafka import KafkaTransport
from taskexecutor_dispatcher.endpoints.redis_stream import RedisStreamTransport
from taskexecutor_dispatcher.executor import Executor
from taskexecutor_dispatcher.queues import QueueSet
from taskexecutor_dispatcher.revisions import Revisions
from taskexecutor_dispatcher.servicer import DispatcherServicer

_HTTP_CLIENTS: dict[str, type[HttpTransport] | type[AiohttpTransport]] = {
    "httptools": HttpTransport,
    "aiohttp": AiohttpTransport,
}


def build(settings: DispatcherSettings) -> list[Service]:
    """All parts in the order of their start. Runs inside the event loop."""
    worker_id = uuid.uuid4()
    clock = Clock()
    opened = OpenDatabase(settings, "dispatcher", settings.db_pool_size)
    database = opened.database
    instances = InstanceStore(database, settings.region, int(DEAD_AFTER_SEC * 1000))
    store = QueueStore(database, worker_id, settings.lease_grace_ms)
    tls = Tls.of(settings.tls)
    hints = SchedulerHints(lambda: instances.list_live("scheduler"), tls)
    revisions = Revisions(
        EndpointStore(database),
        SetupStore(database),
        KeyRing.parse(settings.secret_encryption_key.get_secret_value()),
        revision_ttl_sec=settings.config_cache_ttl_sec,
        secret_ttl_sec=settings.secret_cache_ttl_sec,
    )
    server = RpcServer(settings.internal_listen_addr, grace_sec=1.0, tls=tls)
    heartbeat = make_heartbeat(
        instances.beat,
        "dispatcher",
        worker_id,
        lambda: reachable_address(settings.internal_listen_addr, server.port, settings.advertise_addr),
    )
    egress = EgressPolicy.parse(settings.egress_allow)
    transports: dict[EndpointType, Transport[Any]] = {
        EndpointType.HTTP: _HTTP_CLIENTS[settings.http_client](egress=egress, clock=clock),
        EndpointType.KAFKA: KafkaTransport(egress=egress),
        EndpointType.REDIS_STREAM: RedisStreamTransport(egress=egress),
    }
    completer = Completer(
        store, hints.wake, lambda queues: claimer.make_room(queues), lambda queue, ms: claimer.rest(queue, ms)
    )
    executor = Executor(revisions, transports, completer.put, lambda: heartbeat.is_fenced, clock)
    claimer = Claimer(
        store,
        QueueSet(clock.monotonic, lanes=settings.lanes),
        executor.deliver,
        slots=settings.worker_max_concurrent,
        poll_interval_sec=settings.worker_poll_interval_ms / 1000,
        may_claim=lambda: not heartbeat.is_fenced and completer.keeps_up(),
        unwritten=completer.unwritten,
    )
    servicer = DispatcherServicer(
        claimer.wake, lambda namespace, name: revisions.secrets.forget((namespace, name)), executor
    )
    dispatcher_pb2_grpc.add_DispatcherServiceServicer_to_server(servicer, server.server)
    server.announce("taskexecutor.internal.v1.DispatcherService")
    delivery = Delivery(
        claimer,
        completer,
        list(transports.values()),
        heartbeat,
        shutdown_timeout_sec=settings.shutdown_timeout_sec,
    )
    health = HealthMonitor(
        server.set_serving,
        {"database": heartbeat.problem, "claimer": claimer.problem, "completer": completer.problem},
    )
    regions = ActiveRegions(settings.region, RegionStore(database).list_all)
    return [opened, hints, server, heartbeat, regions.loop, delivery, health]


async def serve(settings: DispatcherSettings) -> None:
    """Runs until a signal."""
    await run_services(build(settings))


def main() -> int:
    """Entry point of `taskexecutor-dispatcher`."""
    return run_process("dispatcher", DispatcherSettings, serve)


if __name__ == "__main__":
    sys.exit(main())
