"""The three services, their gateway and their database with TLS on every line between them."""

from __future__ import annotations

import asyncio
import os
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from taskexecutor_common.api_keys import generate_key
from taskexecutor_common.config.settings import DEAD_AFTER_SEC
from taskexecutor_common.config.tls_files import PEER_NAME, TlsFiles
from taskexecutor_common.crypto import generate_entry
from taskexecutor_common.model.setup import Scope
from taskexecutor_common.rpc.tls import Tls
from taskexecutor_common.store.admin import write_key
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.instances import InstanceStore
from taskexecutor_common.store.migrate import migrate
from taskexecutor_local.ports import free_ports
from taskexecutor_local.process import Process, Program
from taskexecutor_local.programs import script
from tests.e2e.rest import Rest
from tests.e2e.system import in_seconds
from tests.integration.envoy.gateway import Gateway
from tests.integration.tls.postgres_with_tls import PostgresWithTls
from tests.support.certificates import Authority
from tests.support.databases import Databases
from tests.support.peers import PATIENCE_SEC, channel_of, refusal_of
from tests.support.receiver import Receiver, running_receiver
from tests.support.waiting import wait_until

SERVICES = ("scheduler", "dispatcher", "api")


@dataclass(frozen=True)
class SecureSystem:
    """What runs."""

    rest: Rest
    gateway: Gateway
    addresses: dict[str, str]
    metrics: dict[str, str]
    receiver: Receiver


@pytest.fixture(scope="module")
async def secure_database(
    installed_postgres: PostgresWithTls | None, databases: Databases, migrated_url: str
) -> AsyncIterator[str]:
    """A migrated database behind TLS; in clear text where no PostgreSQL with TLS is installed."""
    if installed_postgres is None:
        async with databases.copy(migrated_url) as url:
            yield url
    else:
        url = installed_postgres.url(installed_postgres.client())
        await migrate(url)
        yield url


@pytest.fixture(scope="module")
def system_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("system"))


def is_serving(address: str, tls: Tls) -> Callable[[], Awaitable[bool]]:
    """Whether a service says that it is well, to one of its own."""

    async def ask() -> bool:
        async with channel_of(address, tls.channel_credentials()) as channel:
            try:
                answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=1)
            except grpc.aio.AioRpcError:
                return False
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    return ask


def issue(authority: Authority) -> TlsFiles:
    """What a service is given."""
    issued = authority.issue(names=[PEER_NAME])
    return TlsFiles(str(issued.certificate), str(issued.key), str(authority.file))


def make_program(
    service: str, address: str, metrics: str, files: TlsFiles, environment: dict[str, str], logs: Path
) -> Program:
    """A service that listens at `address`."""
    own = {
        "TE_LISTEN_ADDR" if service == "api" else "TE_INTERNAL_LISTEN_ADDR": address,
        "TE_METRICS_ADDR": metrics,
        "TE_TLS_CERT_FILE": files.certificate,
        "TE_TLS_KEY_FILE": files.key,
        "TE_TLS_CA_FILE": files.authority,
    }
    return Program(
        name=service,
        command=script(f"taskexecutor-{service}"),
        log_path=logs / f"{service}.log",
        is_ready=is_serving(address, Tls(files)),
        environment=environment | own,
    )


@asynccontextmanager
async def running(programs: Iterable[Program]) -> AsyncIterator[None]:
    """Runs them inside the block, started and stopped side by side."""
    processes = [Process(program, lambda _: None) for program in programs]
    try:
        await asyncio.gather(*(process.start() for process in processes))
        yield
    finally:
        await asyncio.gather(*(process.stop() for process in processes))


async def all_are_found(database: Database) -> bool:
    """Whether each service would find the others."""
    instances = InstanceStore(database, "default", int(DEAD_AFTER_SEC * 1000))
    return all([await instances.list_live(service) for service in SERVICES])


@pytest.fixture(scope="module")
async def system(
    secure_database: str, system_authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SecureSystem]:
    """All of it, started once; each part has a certificate of its own."""
    key = generate_key()
    database = Database(secure_database, pool_size=1, application_name="tests")
    await database.open()
    await write_key(database, key, "default", "tests", list(Scope))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TE_")} | {
        "TE_DATABASE_URL": secure_database,
        "TE_SECRET_ENCRYPTION_KEY": generate_entry(),
        "TE_EGRESS_ALLOW": "loopback",
    }
    ports = [f"127.0.0.1:{port}" for port in free_ports(2 * len(SERVICES))]
    addresses = dict(zip(SERVICES, ports, strict=False))
    metrics = dict(zip(SERVICES, ports[len(SERVICES) :], strict=True))
    public, own = system_authority.issue(addresses=["127.0.0.1"]), issue(system_authority)
    logs = tmp_path_factory.mktemp("logs")
    gateway = Gateway(
        addresses["api"],
        tls_cert=str(public.certificate),
        tls_key=str(public.key),
        upstream_cert=own.certificate,
        upstream_key=own.key,
        upstream_ca=own.authority,
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(database.close)
        receiver = stack.enter_context(running_receiver())
        programs = [
            make_program(service, addresses[service], metrics[service], issue(system_authority), environment, logs)
            for service in SERVICES
        ]
        await stack.enter_async_context(running(programs))
        await wait_until(lambda: all_are_found(database), what="the heartbeats of all services")
        stack.callback(gateway.stop)
        await gateway.start()
        connector = aiohttp.TCPConnector(ssl=system_authority.trusting())
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        rest = Rest(session, f"https://{gateway.address}", key)
        yield SecureSystem(rest, gateway, addresses, metrics, receiver)


async def hints(system: SecureSystem, service: str) -> dict[tuple[str, str], float]:
    """(target, result) -> how many hints a service has sent, by its metrics."""
    async with aiohttp.ClientSession() as session, session.get(f"http://{system.metrics[service]}/metrics") as answer:
        page = await answer.text()
    found = re.findall(r'^taskexecutor_hints_total\{result="(\w+)",target="(\w+)"\} (\S+)$', page, re.MULTILINE)
    return {(target, result): float(count) for result, target, count in found}


@pytest.fixture
async def endpoint(system: SecureSystem) -> str:
    """An endpoint whose deliveries go to the receiver's path of the same name."""
    name = f"hook-{uuid.uuid4().hex}"
    spec = {"url": system.receiver.url(f"/{name}"), "method": "POST"}
    await system.rest.create("/endpoints", {"name": name, "type": "HTTP", "spec": spec})
    return name


async def test_a_job_is_delivered_and_the_hint_of_it_arrives(system: SecureSystem, endpoint: str) -> None:
    job = {"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": endpoint, "input": {}}
    await system.rest.create("/jobs", job)
    await wait_until(lambda: len(system.receiver.requests(f"/{endpoint}")) == 1, what="the delivery")

    async def told() -> bool:
        sent = await hints(system, "api")
        assert ("dispatcher", "failed") not in sent
        return sent.get(("dispatcher", "sent"), 0) >= 1

    await wait_until(told, what="a hint that arrived")


async def test_a_delayed_job_wakes_the_scheduler_which_wakes_the_dispatcher(
    system: SecureSystem, endpoint: str
) -> None:
    job = {"endpoint": endpoint, "trigger": "DELAYED", "idempotency_key": endpoint, "input": {}}
    await system.rest.create("/jobs", {**job, "run_at": in_seconds(0.3)})
    await wait_until(lambda: len(system.receiver.requests(f"/{endpoint}")) == 1, what="the delivery")

    async def told(service: str, target: str) -> bool:
        return (await hints(system, service)).get((target, "sent"), 0) >= 1

    await wait_until(lambda: told("api", "scheduler"), what="a hint to the scheduler")
    await wait_until(lambda: told("scheduler", "dispatcher"), what="a hint to the dispatcher")


async def test_a_test_delivery_goes_from_the_api_to_a_dispatcher(system: SecureSystem, endpoint: str) -> None:
    shown = await system.rest.post(f"/endpoints/{endpoint}/test", {"input": {}})
    assert shown["output"]["status_code"] == 200


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("caller", ["in clear text", "without a certificate"])
async def test_no_port_hears_a_stranger(
    system: SecureSystem, system_authority: Authority, service: str, caller: str
) -> None:
    anonymous = grpc.ssl_channel_credentials(system_authority.file.read_bytes())
    async with channel_of(system.addresses[service], None if caller == "in clear text" else anonymous) as channel:
        stub, check = health_pb2_grpc.HealthStub(channel), health_pb2.HealthCheckRequest()
        assert await refusal_of(lambda: stub.Check(check, timeout=PATIENCE_SEC)) is grpc.StatusCode.UNAVAILABLE


async def test_reflection_through_the_gateway_lists_nothing_internal(
    system: SecureSystem, system_authority: Authority
) -> None:
    trusting = grpc.ssl_channel_credentials(system_authority.file.read_bytes())
    async with grpc.aio.secure_channel(system.gateway.address, trusting) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        async for answer in stub.ServerReflectionInfo(iter([request])):
            names = {service.name for service in answer.list_services_response.service}
            break
    assert "taskexecutor.v1.JobService" in names
    assert [name for name in names if "internal" in name] == []
