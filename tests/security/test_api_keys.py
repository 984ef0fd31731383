"""Keys at the api's door: guesses are limited where they come from, and what is taken away is gone within its time."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

import grpc.aio
import pytest

from taskexecutor.v1 import api_key_pb2, api_key_pb2_grpc, config_pb2, config_pb2_grpc
from taskexecutor_common.store.database import Database
from tests.e2e.calls import GrpcError, read_error
from tests.security.servers import a_key, door, sent_with
from tests.support.waiting import wait_until

TTL_SEC = 0.2
EXPIRES_SEC = 2.0  # long enough for the calls before that
PATIENCE_SEC = 5.0  # with the machine
ELSEWHERE = "198.51.100.7"
LIST = config_pb2.ListConfigsRequest()


async def answer(channel: grpc.aio.Channel, key: str, source: str = "192.0.2.1") -> GrpcError | None:
    """The error of a call with this key; None when it was let in."""
    try:
        await config_pb2_grpc.ConfigServiceStub(channel).ListConfigs(LIST, **sent_with(key, source))
    except grpc.aio.AioRpcError as error:
        return read_error(error)
    return None


def with_other_secret(key: str) -> str:
    return f"{key.rpartition('_')[0]}_{secrets.token_hex(24)}"


async def test_brute_force_at_a_key_is_slowed_down_and_hits_nobody_else(db: Database) -> None:
    key, neighbour = await a_key(db), await a_key(db)
    async with door(db) as channel:
        answers = [await answer(channel, with_other_secret(key), ELSEWHERE) for _ in range(40)]
        reasons = [refused.reason for refused in answers if refused]
        assert reasons.count("RATE_LIMITED") >= 10
        limited = next(refused for refused in answers if refused and refused.reason == "RATE_LIMITED")
        assert limited.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert int(limited.metadata["retry-after"]) >= 1
        assert limited.details["RetryInfo"].retry_delay.ToMilliseconds() > 0
        assert await answer(channel, key) is None
        assert await answer(channel, neighbour, ELSEWHERE) is None


async def test_made_up_keys_are_slowed_down(db: Database) -> None:
    known = await a_key(db)
    async with door(db) as channel:
        assert await answer(channel, known, ELSEWHERE) is None
        made_up = [f"te_{number:08x}_{secrets.token_hex(8)}" for number in range(400)]
        reasons = [refused.reason for key in made_up if (refused := await answer(channel, key, ELSEWHERE))]
        assert reasons.count("RATE_LIMITED") >= 30
        assert await answer(channel, known, ELSEWHERE) is None
        assert await answer(channel, await a_key(db)) is None


async def test_an_unknown_id_and_a_wrong_secret_are_answered_alike(db: Database) -> None:
    key = await a_key(db)
    async with door(db) as channel:
        await answer(channel, key)
        wrong = await answer(channel, with_other_secret(key))
        unknown = await answer(channel, f"te_{secrets.token_hex(8)}_{secrets.token_hex(24)}")
    assert wrong is not None
    assert unknown is not None
    assert (wrong.code, wrong.message, wrong.reason) == (unknown.code, unknown.message, unknown.reason)
    assert set(wrong.metadata) == set(unknown.metadata)


async def made_by_the_api(channel: grpc.aio.Channel, admin: str, expires_at: datetime | None = None) -> tuple[str, str]:
    request = api_key_pb2.CreateApiKeyRequest(name="guest", scopes=[api_key_pb2.ApiKey.read], expires_at=expires_at)
    made = await api_key_pb2_grpc.ApiKeyServiceStub(channel).CreateApiKey(request, **sent_with(admin))
    return made.api_key.key_id, made.key


async def test_a_revoked_key_is_refused_within_the_time_that_keys_are_trusted(db: Database) -> None:
    admin = await a_key(db)
    async with door(db, ttl_sec=TTL_SEC) as channel:
        key_id, key = await made_by_the_api(channel, admin)
        assert await answer(channel, key) is None
        await api_key_pb2_grpc.ApiKeyServiceStub(channel).RevokeApiKey(
            api_key_pb2.RevokeApiKeyRequest(key_id=key_id), **sent_with(admin)
        )
        refused = await wait_until(lambda: answer(channel, key), TTL_SEC + PATIENCE_SEC, "the refusal")
    assert refused.reason == "UNAUTHORIZED"


async def test_an_expired_key_is_refused_within_the_time_that_keys_are_trusted(db: Database) -> None:
    admin = await a_key(db)
    async with door(db, ttl_sec=TTL_SEC) as channel:
        _, key = await made_by_the_api(channel, admin, datetime.now(UTC) + timedelta(seconds=EXPIRES_SEC))
        assert await answer(channel, key) is None
        refused = await wait_until(lambda: answer(channel, key), EXPIRES_SEC + TTL_SEC + PATIENCE_SEC, "the refusal")
    assert refused.reason == "UNAUTHORIZED"


@pytest.mark.parametrize("ago", [timedelta(seconds=1), timedelta(days=365), timedelta(days=365 * 2000)])
async def test_a_key_cannot_be_made_expired(db: Database, ago: timedelta) -> None:
    admin = await a_key(db)
    async with door(db) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await made_by_the_api(channel, admin, datetime.now(UTC) - ago)
    error = read_error(refused.value)
    assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["expires_at"])
    assert "lies in the past" in error.message


async def test_a_key_may_expire_never(db: Database) -> None:
    admin = await a_key(db)
    async with door(db) as channel:
        _, key = await made_by_the_api(channel, admin)
        assert await answer(channel, key) is None
