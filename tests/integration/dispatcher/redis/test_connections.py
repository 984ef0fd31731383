"""What connections do when servers hang, die, come back, or are not what they seem."""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from pathlib import Path

import pytest
import uvloop

from tests.integration.dispatcher.names import Names
from tests.integration.dispatcher.redis.conftest import Deliver, StartRedis
from tests.integration.dispatcher.redis.deliveries import PATIENCE_MS, STREAM, a_request, a_transport, an_identity
from tests.integration.dispatcher.redis.talking import Talker, answering, behind_tls, silent
from tests.servers.redis import RedisUnderTest
from tests.support.certificates import Authority
from tests.support.open_files import no_more_files
from tests.support.waiting import wait_until

SECRET = "hunter2"


async def test_a_server_that_is_not_there_is_a_connection_error(deliver: Deliver) -> None:
    outcome = await deliver(f"redis://user:{SECRET}@127.0.0.1:1")
    assert outcome.error is not None
    assert outcome.error.to_json() == {
        "type": "CONNECTION_ERROR",
        "message": "Could not connect to 127.0.0.1:1: Connection refused.",
    }
    assert outcome.retryable


async def test_a_name_that_is_not_known_is_a_connection_error(deliver: Deliver) -> None:
    outcome = await deliver("redis://nowhere.invalid")
    assert outcome.error is not None
    assert outcome.error.type == "CONNECTION_ERROR"
    assert outcome.error.message.startswith("nowhere.invalid:6379 could not be resolved")


async def test_a_frozen_server_is_a_timeout(start_redis: StartRedis, deliver: Deliver) -> None:
    server = start_redis()
    assert (await deliver(server.url())).succeeded
    server.freeze()
    kept = await deliver(server.url(), timeout_ms=500)
    fresh = await asyncio.gather(*(deliver(server.url(), timeout_ms=500) for _ in range(3)))
    server.thaw()
    for outcome in (kept, *fresh):
        assert outcome.error is not None
        assert outcome.error.to_json() == {"type": "TIMEOUT", "message": "Redis did not answer within 500 ms."}
        assert outcome.retryable


async def test_a_frozen_server_does_not_hold_up_a_living_one(
    start_redis: StartRedis, redis_server: RedisUnderTest, deliver: Deliver
) -> None:
    frozen = start_redis()
    frozen.freeze()
    stuck = [asyncio.create_task(deliver(frozen.url(), timeout_ms=3000)) for _ in range(100)]
    await asyncio.sleep(0)
    assert (await deliver(redis_server.url())).succeeded
    assert not any(task.done() for task in stuck)
    for task in stuck:
        task.cancel()
    await asyncio.gather(*stuck, return_exceptions=True)


async def test_each_attempt_adds_at_most_once_even_when_a_frozen_server_goes_on(
    start_redis: StartRedis, deliver: Deliver
) -> None:
    server = start_redis()
    server.freeze()
    for _ in range(3):
        await deliver(server.url(), timeout_ms=50)
    server.thaw()
    assert (await deliver(server.url())).succeeded
    assert server.admin("XLEN", STREAM) <= 4


async def test_a_server_that_closes_instead_of_answering_is_asked_once(deliver: Deliver) -> None:
    async with answering(b"") as server:
        outcome = await deliver(server.url())
        assert [command[0] for command in server.commands] == ["XADD"]
    assert outcome.error is not None
    assert outcome.error.to_json() == {
        "type": "CONNECTION_ERROR",
        "message": f"The connection to 127.0.0.1:{server.port} ended before Redis answered.",
    }


async def test_a_server_that_dies_while_it_is_waited_for_is_a_connection_error(
    start_redis: StartRedis, deliver: Deliver
) -> None:
    server = start_redis()
    assert (await deliver(server.url())).succeeded
    server.freeze()
    delivery = asyncio.create_task(deliver(server.url()))
    for _ in range(10):
        await asyncio.sleep(0)  # until it is sent
    server.kill()
    outcome = await delivery
    assert outcome.error is not None
    assert outcome.error.type == "CONNECTION_ERROR"


async def test_kept_connections_that_ended_with_their_server_cost_no_attempt(
    start_redis: StartRedis, deliver: Deliver
) -> None:
    server = start_redis()
    await asyncio.gather(*(deliver(server.url()) for _ in range(20)))
    server.kill()
    server.start()
    outcomes = await asyncio.gather(*(deliver(server.url()) for _ in range(20)))
    assert all(outcome.succeeded for outcome in outcomes), outcomes


async def test_a_server_that_was_away_is_found_again(start_redis: StartRedis, deliver: Deliver) -> None:
    server = start_redis()
    assert (await deliver(server.url())).succeeded
    server.kill()
    assert not (await deliver(server.url())).succeeded
    server.start()
    assert (await deliver(server.url())).succeeded


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x01\x02\r\n",
        b"-MOVED garbage\r\n",
        b"-ASK 1 nowhere\r\n",
        b"$3\r\n\xff\xff\xff\r\n",
    ],
)
async def test_a_server_that_speaks_no_redis_is_a_connection_error(deliver: Deliver, garbage: bytes) -> None:
    async with answering(garbage) as server:
        outcome = await deliver(server.url())
    assert outcome.error is not None
    assert outcome.error.message == f"What 127.0.0.1:{server.port} answers is not the Redis protocol."


@pytest.mark.parametrize("answer", [b"+\r\n", b"+OK\r\n", b"$3\r\n1-x\r\n", b":7\r\n"])
async def test_an_answer_that_is_no_entrys_id_is_no_success(deliver: Deliver, answer: bytes) -> None:
    async with answering(answer) as server:
        outcome = await deliver(server.url())
    assert outcome.error is not None
    assert outcome.error.message == f"What 127.0.0.1:{server.port} answered is not the id of an entry."


async def test_a_connection_that_our_own_machine_cannot_open_is_not_the_servers_fault(
    redis_server: RedisUnderTest, deliver: Deliver
) -> None:
    with no_more_files():
        outcome = await deliver(redis_server.url())
    assert not outcome.was_begun
    assert not outcome.is_receivers_fault
    assert (await deliver(redis_server.url())).succeeded


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{SECRET}@127.0.0.1:6379?ssl_cert_reqs=none",
        f"redis://:{SECRET}@127.0.0.1/first",
        f"redis://:{SECRET}@127.0.0.1/1?db=2",
        f"redis://:{SECRET}@127.0.0.1:99999",
        f"redis://:{SECRET}@",
        f"unix://:{SECRET}@/tmp/redis.sock",
    ],
)
async def test_a_url_that_cannot_be_meant_is_refused_and_not_shown(deliver: Deliver, url: str) -> None:
    outcome = await deliver(url)
    assert outcome.error is not None
    assert outcome.error.type == "INVALID_DESTINATION"
    assert SECRET not in outcome.error.message
    assert not outcome.retryable


async def test_waiting_for_a_connection_counts(redis_server: RedisUnderTest) -> None:
    transport = a_transport(max_connections_per_server=1)
    async with silent() as server:
        requests = [transport.deliver(a_request(server.url()), an_identity(), 100) for _ in range(3)]
        outcomes = await asyncio.gather(*requests)
    await transport.close()
    assert [outcome.error and outcome.error.type for outcome in outcomes] == ["TIMEOUT"] * 3


async def test_idle_connections_are_closed(redis_server: RedisUnderTest) -> None:
    transport = a_transport(idle_sec=0)
    await transport.deliver(a_request(redis_server.url()), an_identity(), PATIENCE_MS)
    await wait_until(lambda: redis_server.info("clients")["connected_clients"] == 1)
    await transport.close()


async def test_no_more_servers_than_allowed_are_kept(start_redis: StartRedis, redis_server: RedisUnderTest) -> None:
    transport = a_transport(max_servers=1)
    other = start_redis()
    await transport.deliver(a_request(redis_server.url()), an_identity(), PATIENCE_MS)
    await transport.deliver(a_request(other.url()), an_identity(), PATIENCE_MS)
    await wait_until(lambda: redis_server.info("clients")["connected_clients"] == 1)
    assert other.info("clients")["connected_clients"] == 2
    await transport.close()


async def test_deliveries_in_flight_fail_when_the_transport_closes() -> None:
    transport = a_transport()
    async with silent() as server:
        delivery = asyncio.create_task(transport.deliver(a_request(server.url()), an_identity(), PATIENCE_MS))
        await wait_until(lambda: server.commands)
        await transport.close()
        outcome = await asyncio.wait_for(delivery, 5)
    assert outcome.error is not None
    assert outcome.error.to_json() == {"type": "CONNECTION_ERROR", "message": "The dispatcher is shutting down."}
    assert outcome.retryable


async def test_a_closed_transport_sends_nothing(redis_server: RedisUnderTest) -> None:
    transport = a_transport()
    await transport.close()
    await transport.close()
    outcome = await transport.deliver(a_request(redis_server.url()), an_identity(), PATIENCE_MS)
    assert outcome.error is not None
    assert outcome.error.message == "The dispatcher is shutting down."
    assert redis_server.admin("XLEN", STREAM) == 0


async def test_cancelling_closes_the_connection_and_frees_its_place(redis_server: RedisUnderTest) -> None:
    transport = a_transport(max_connections_per_server=1)
    async with silent() as server:
        for count in (1, 2):
            delivery = asyncio.create_task(transport.deliver(a_request(server.url()), an_identity(), PATIENCE_MS))
            await wait_until(partial(_has_commands, server, count))
            delivery.cancel()
            with pytest.raises(asyncio.CancelledError):
                await delivery
        assert server.connections == 2
    await transport.close()


def _has_commands(server: Talker, count: int) -> bool:
    return len(server.commands) == count


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def test_a_server_with_a_trusted_certificate_is_sent_to(
    redis_server: RedisUnderTest, authority: Authority
) -> None:
    transport = a_transport(tls=authority.trusting())
    async with behind_tls(redis_server.port, authority.serving()) as port:
        outcome = await transport.deliver(a_request(f"rediss://127.0.0.1:{port}"), an_identity(), PATIENCE_MS)
        await transport.close()
    assert outcome.succeeded
    assert redis_server.admin("XLEN", STREAM) == 1


@pytest.mark.parametrize(
    ("address", "is_trusted", "reason"),
    [("127.0.0.1", False, "unable to get local issuer certificate"), ("127.0.0.9", True, "IP address mismatch")],
)
async def test_a_certificate_that_does_not_fit_is_refused(
    redis_server: RedisUnderTest, authority: Authority, address: str, is_trusted: bool, reason: str
) -> None:
    transport = a_transport(tls=authority.trusting() if is_trusted else None)
    async with behind_tls(redis_server.port, authority.serving(address=address)) as port:
        outcome = await transport.deliver(a_request(f"rediss://:{SECRET}@127.0.0.1:{port}"), an_identity(), PATIENCE_MS)
        await transport.close()
    assert outcome.error is not None
    assert outcome.error.type == "CONNECTION_ERROR"
    assert outcome.error.message.startswith(f"TLS with 127.0.0.1:{port} failed: ")
    assert reason in outcome.error.message
    assert redis_server.admin("XLEN", STREAM) == 0


async def test_a_certificate_must_be_for_the_name_in_the_url_and_not_for_the_address_behind_it(
    redis_server: RedisUnderTest, authority: Authority
) -> None:
    transport = a_transport(tls=authority.trusting(), resolver=Names("127.0.0.1"))
    async with behind_tls(redis_server.port, authority.serving(address="127.0.0.1")) as port:
        outcome = await transport.deliver(a_request(f"rediss://redis.test:{port}"), an_identity(), PATIENCE_MS)
        await transport.close()
    assert outcome.error is not None
    assert "not valid for 'redis.test'" in outcome.error.message


async def test_a_server_without_tls_does_not_get_the_password(deliver: Deliver) -> None:
    async with silent() as server:
        outcome = await deliver(f"rediss://:{SECRET}@127.0.0.1:{server.port}", timeout_ms=200)
        assert server.commands == []
    assert not outcome.succeeded


async def test_it_works_under_uvloop(redis_server: RedisUnderTest, authority: Authority) -> None:
    async def deliver_twice() -> list[bool]:
        transport = a_transport(tls=authority.trusting())
        async with behind_tls(redis_server.port, authority.serving()) as port:
            urls = (redis_server.url(), f"rediss://127.0.0.1:{port}", "redis://127.0.0.1:1")
            outcomes = [await transport.deliver(a_request(url), an_identity(), PATIENCE_MS) for url in urls]
            await transport.close()
        return [outcome.succeeded for outcome in outcomes]

    def run() -> list[bool]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(deliver_twice())

    assert await asyncio.to_thread(run) == [True, True, False]
    gc.collect()  # an unclosed socket would warn here, which is an error
