"""Wires the api together; the only place that builds its parts."""

from __future__ import annotations

import sys
import uuid

from taskexecutor.v1 import (
    api_key_pb2_grpc,
    config_pb2_grpc,
    endpoint_pb2_grpc,
    execution_pb2_grpc,
    job_pb2_grpc,
    payload_spec_pb2_grpc,
    secret_pb2_grpc,
)
from taskexecutor_api.auth import AuthInterceptor, KeyRegistry
from taskexecutor_api.endpoint_catalog import EndpointCatalog
from taskexecutor_api.input_checks import InputChecks
from taskexecutor_api.operations.create_job import JobCreator
from taskexecutor_api.operations.cron_jobs import CronJobs
from taskexecutor_api.operations.job_writer import JobWriter
from taskexecutor_api.operations.preview_delivery import DeliveryPreview
from taskexecutor_api.rate_limit import RateLimiter
from taskexecutor_api.servicers.api_keys import ApiKeyServicer
from taskexecutor_api.servicers.configs import ConfigServicer
from taskexecutor_api.servicers.endpoints import EndpointServicer
from taskexecutor_api.servicers.executions import ExecutionServicer
from taskexecutor_api.servicers.jobs import JobServicer
from taskexecutor_api.servicers.payload_specs import PayloadSpecServicer
from taskexecutor_api.servicers.secrets import SecretServicer
from taskexecutor_common.clock import Clock
from taskexecutor_common.config.settings import DEAD_AFTER_SEC, ApiSettings
from taskexecutor_common.crypto import KeyRing
from taskexecutor_common.ids import LaneIds
from taskexecutor_common.rpc.hints import DispatcherHints, SchedulerHints
from taskexecutor_common.rpc.server import RpcServer
from taskexecutor_common.rpc.tls import Tls
from taskexecutor_common.runtime.health import HealthMonitor
from taskexecutor_common.runtime.instance import make_heartbeat, reachable_address
from taskexecutor_common.runtime.process import run_process
from taskexecutor_common.runtime.service import Service, run_services
from taskexecutor_common.store.api_keys import ApiKeyStore
from taskexecutor_common.store.cron_jobs import CronJobStore
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.endpoints import EndpointStore
from taskexecutor_common.store.executions import ExecutionStore
from taskexecutor_common.store.flow import FlowStore
from taskexecutor_common.store.instances import InstanceStore
from taskexecutor_common.store.jobs import JobStore
from taskexecutor_common.store.opening import OpenDatabase
from taskexecutor_common.store.setup import SetupStore


def build(settings: ApiSettings) -> list[Service]:
    """All parts in the order of their start."""
    opened = OpenDatabase(settings, "api", settings.db_pool_size)
    instances = InstanceStore(opened.database, settings.region, int(DEAD_AFTER_SEC * 1000))
    tls = Tls.of(settings.tls)
    dispatchers = DispatcherHints(lambda: instances.list_live("dispatcher"), tls)
    schedulers = SchedulerHints(lambda: instances.list_live("scheduler"), tls)
    writer = JobWriter(JobStore(opened.database, settings.region))
    checks = InputChecks()

    registry = KeyRegistry(ApiKeyStore(opened.database), settings.api_key_cache_ttl_sec)
    limiter = RateLimiter(settings.rate_limit_per_sec, settings.rate_limit_burst)
    rpc = RpcServer(
        settings.listen_addr,
        grace_sec=settings.shutdown_timeout_sec,
        interceptors=[AuthInterceptor(registry, limiter)],
        tls=tls,
    )
    _add_setup_servicers(rpc, settings, opened.database, dispatchers)
    _add_job_servicers(rpc, settings, opened.database, writer, checks, dispatchers, schedulers)
    heartbeat = make_heartbeat(
        instances.beat,
        "api",
        uuid.uuid4(),
        lambda: reachable_address(settings.listen_addr, rpc.port, settings.advertise_addr),
    )
    health = HealthMonitor(rpc.set_serving, {"database": heartbeat.problem})
    return [opened, dispatchers, schedulers, writer, checks, heartbeat, rpc, health]


def _add_setup_servicers(
    rpc: RpcServer, settings: ApiSettings, database: Database, dispatchers: DispatcherHints
) -> None:
    setup = SetupStore(database)
    keys = KeyRing.parse(settings.secret_encryption_key.get_secret_value())
    payload_spec_pb2_grpc.add_PayloadSpecServiceServicer_to_server(PayloadSpecServicer(setup), rpc.server)
    config_pb2_grpc.add_ConfigServiceServicer_to_server(ConfigServicer(setup), rpc.server)
    secret_pb2_grpc.add_SecretServiceServicer_to_server(SecretServicer(setup, keys, dispatchers), rpc.server)
    api_key_pb2_grpc.add_ApiKeyServiceServicer_to_server(ApiKeyServicer(ApiKeyStore(database), Clock()), rpc.server)
    for name in ("PayloadSpec", "Config", "Secret", "ApiKey"):
        rpc.announce(f"taskexecutor.v1.{name}Service")


def _add_job_servicers(
    rpc: RpcServer,
    settings: ApiSettings,
    database: Database,
    writer: JobWriter,
    checks: InputChecks,
    dispatchers: DispatcherHints,
    schedulers: SchedulerHints,
) -> None:
    clock = Clock()
    setup, endpoints, executions = SetupStore(database), EndpointStore(database), ExecutionStore(database)
    jobs, cron_jobs = JobStore(database, settings.region), CronJobStore(database, settings.region)
    catalog = EndpointCatalog(endpoints, setup)
    lane_ids = LaneIds(settings.lanes, clock.epoch_ms)
    creator = JobCreator(jobs, cron_jobs, writer, catalog, checks, lane_ids, clock, dispatchers, schedulers)
    changes = CronJobs(jobs, cron_jobs, catalog, checks, lane_ids, clock, schedulers)
    preview = DeliveryPreview(setup, catalog, checks, dispatchers.peers, clock)

    job_servicer = JobServicer(jobs, cron_jobs, executions, endpoints, creator, changes, clock)
    endpoint_servicer = EndpointServicer(endpoints, FlowStore(database), setup, catalog, preview, dispatchers)
    endpoint_pb2_grpc.add_EndpointServiceServicer_to_server(endpoint_servicer, rpc.server)
    job_pb2_grpc.add_JobServiceServicer_to_server(job_servicer, rpc.server)
    execution_pb2_grpc.add_ExecutionServiceServicer_to_server(ExecutionServicer(jobs, executions), rpc.server)
    for name in ("Endpoint", "Job", "Execution"):
        rpc.announce(f"taskexecutor.v1.{name}Service")


async def serve(settings: ApiSettings) -> None:
    """Runs until a signal."""
    await run_services(build(settings))


def main() -> int:
    """Entry point of `taskexecutor-api`."""
    return run_process("api", ApiSettings, serve)


if __name__ == "__main__":
    sys.exit(main())
