"""What guessing at API keys costs whom: the guesser its rate, the database a bounded number of looks, the owner nothing."""

from __future__ import annotations

import asyncio
import hashlib
import hmac

import pytest

from taskexecutor_api import auth
from taskexecutor_api.auth import Caller, KeyRegistry
from taskexecutor_api.rate_limit import RateLimiter
from taskexecutor_common.errors import RateLimited, TaskExecutorError, Unauthorized, Unavailable
from taskexecutor_common.model.setup import ApiKey

KEY_ID, SECRET = "0123456789abcdef", "ab" * 24
GOOD = f"Bearer te_{KEY_ID}_{SECRET}"
WRONG = f"Bearer te_{KEY_ID}_{'cd' * 24}"
HERE, ELSEWHERE = "192.0.2.1", "198.51.100.1"
GUESSES, MISSES = 3, 5


class Keys:
    """Stands in for ApiKeyStore: one key, and how often it was asked; the clock that the limits go by."""

    def __init__(self) -> None:
        digest = hashlib.sha256(SECRET.encode()).digest()
        self.key: ApiKey | None = ApiKey(KEY_ID, "acme", digest, ["write"], usable=True)
        self.asked: list[str] = []
        self.failure: Exception | None = None
        self.now = 0.0

    async def find(self, key_id: str) -> ApiKey | None:
        self.asked.append(key_id)
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return self.key if key_id == KEY_ID else None

    def registry(self, ttl_sec: float = 60.0) -> KeyRegistry:
        guesses = RateLimiter(1.0, GUESSES, lambda: self.now)
        misses = RateLimiter(1.0, MISSES, lambda: self.now)
        return KeyRegistry(self, ttl_sec, guesses=guesses, misses=misses)  # type: ignore[arg-type]


@pytest.fixture
def keys() -> Keys:
    return Keys()


async def outcome(registry: KeyRegistry, authorization: str, source: str = HERE) -> type[TaskExecutorError] | None:
    """The kind of refusal; None for a key that was let in."""
    try:
        await registry.authenticate(authorization, source)
    except TaskExecutorError as error:
        return type(error)
    return None


def unknown(number: int) -> str:
    return f"Bearer te_{number:08x}_{SECRET}"


async def test_a_good_key_is_looked_up_once(keys: Keys) -> None:
    registry = keys.registry()
    for _ in range(3):
        assert await registry.authenticate(GOOD, HERE) == Caller(KEY_ID, "acme", frozenset({"write"}))
    assert keys.asked == [KEY_ID]


async def test_guesses_at_a_key_are_limited_and_the_limit_says_when_to_come_back(keys: Keys) -> None:
    registry = keys.registry()
    assert [await outcome(registry, WRONG) for _ in range(GUESSES + 1)] == [*[Unauthorized] * GUESSES, RateLimited]
    with pytest.raises(RateLimited) as refused:
        await registry.authenticate(WRONG, HERE)
    assert refused.value.retry_after == pytest.approx(1.0)
    keys.now += 1.0
    assert [await outcome(registry, WRONG) for _ in range(2)] == [Unauthorized, RateLimited]


async def test_beyond_the_limit_not_even_the_right_guess_is_told(keys: Keys) -> None:
    registry = keys.registry()
    for _ in range(GUESSES):
        await outcome(registry, WRONG)
    assert await outcome(registry, GOOD) is RateLimited
    keys.now += 1.0
    assert await outcome(registry, GOOD) is None


async def test_guesses_that_come_all_at_once_are_counted_one_by_one(keys: Keys) -> None:
    registry = keys.registry()
    outcomes = await asyncio.gather(*(outcome(registry, WRONG) for _ in range(50)))
    assert outcomes.count(Unauthorized) == GUESSES
    assert outcomes.count(RateLimited) == 50 - GUESSES


async def test_guessing_from_elsewhere_locks_nobody_out(keys: Keys) -> None:
    registry = keys.registry(ttl_sec=0)
    for _ in range(100):
        await outcome(registry, WRONG, ELSEWHERE)
    assert await outcome(registry, WRONG, ELSEWHERE) is RateLimited
    assert [await outcome(registry, GOOD, HERE) for _ in range(3)] == [None, None, None]


async def test_guessing_at_one_key_leaves_another_of_the_same_machine_alone(keys: Keys) -> None:
    registry = keys.registry()
    for _ in range(GUESSES):
        await outcome(registry, unknown(1))
    assert await outcome(registry, unknown(1)) is RateLimited
    assert await outcome(registry, GOOD) is None


async def test_made_up_ids_cost_the_database_a_bounded_number_of_looks(keys: Keys) -> None:
    registry = keys.registry()
    outcomes = [await outcome(registry, unknown(number)) for number in range(100)]
    assert outcomes == [*[Unauthorized] * MISSES, *[RateLimited] * (100 - MISSES)]
    assert len(keys.asked) == MISSES
    at_once = await asyncio.gather(*(outcome(registry, unknown(number), ELSEWHERE) for number in range(100)))
    assert at_once.count(Unauthorized) == MISSES
    assert len(keys.asked) == 2 * MISSES


async def test_a_key_that_was_good_here_is_spared_the_limit_on_lookups(keys: Keys) -> None:
    registry = keys.registry(ttl_sec=0)
    assert await outcome(registry, GOOD) is None
    for number in range(2 * MISSES):
        await outcome(registry, unknown(number))
    assert await outcome(registry, unknown(99)) is RateLimited
    assert await outcome(registry, GOOD) is None


async def test_good_keys_cost_nothing_however_many_come_at_once(keys: Keys) -> None:
    registry = keys.registry()
    assert await asyncio.gather(*(outcome(registry, GOOD) for _ in range(100))) == [None] * 100
    assert keys.asked == [KEY_ID]
    keys.key = None
    assert [await outcome(registry, unknown(number)) for number in range(MISSES)] == [Unauthorized] * MISSES


async def test_a_database_that_is_away_counts_for_nobody(keys: Keys) -> None:
    registry = keys.registry()
    keys.failure = Unavailable("away")
    assert {await outcome(registry, GOOD) for _ in range(3 * MISSES)} == {Unavailable}
    keys.failure = None
    assert await outcome(registry, GOOD) is None


@pytest.mark.parametrize("authorization", [WRONG, unknown(7), GOOD.replace(KEY_ID, KEY_ID[::-1])])
async def test_an_unknown_id_and_a_wrong_secret_cost_and_answer_the_same(
    keys: Keys, authorization: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared, compare_digest = [], hmac.compare_digest

    def compare(ours: bytes, theirs: bytes) -> bool:
        compared.append((len(ours), len(theirs)))
        return compare_digest(ours, theirs)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    registry = keys.registry()
    await registry.authenticate(GOOD, ELSEWHERE)  # the key is in use, so its id is known
    keys.asked.clear()
    compared.clear()
    with pytest.raises(Unauthorized, match=r"^the API key is unknown, expired or revoked$"):
        await registry.authenticate(authorization, HERE)
    assert len(keys.asked) == 1
    assert compared == [(32, 32), (32, 32)]


async def test_a_key_that_was_revoked_is_refused_after_the_time_that_it_is_trusted(keys: Keys) -> None:
    registry = keys.registry(ttl_sec=0.05)
    assert await outcome(registry, GOOD) is None
    assert keys.key is not None
    keys.key = ApiKey(KEY_ID, "acme", keys.key.secret_hash, ["write"], usable=False)
    refused_at = asyncio.get_running_loop().time() + 0.05
    while await outcome(registry, GOOD) is None:
        assert asyncio.get_running_loop().time() < refused_at + 5.0
        await asyncio.sleep(0.005)
    assert await outcome(registry, GOOD) is Unauthorized


async def test_what_is_known_of_a_key_never_refuses_by_itself(keys: Keys) -> None:
    """A key that was given a new secret, or brought back to life, works at once."""
    registry = keys.registry()
    assert keys.key is not None
    living, keys.key = keys.key, ApiKey(KEY_ID, "acme", keys.key.secret_hash, ["write"], usable=False)
    assert await outcome(registry, GOOD) is Unauthorized
    keys.key = living
    assert await outcome(registry, GOOD) is None


class Call:
    """Stands in for a gRPC call, as far as who makes it is concerned."""

    def __init__(self, *metadata: tuple[str, str], peer: str = "ipv4:203.0.113.9:41234") -> None:
        self._metadata, self._peer = metadata, peer

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._metadata

    def peer(self) -> str:
        return self._peer


@pytest.mark.parametrize(
    ("call", "source"),
    [
        (Call(("x-forwarded-for", "192.0.2.1")), "192.0.2.1"),
        (Call(("x-forwarded-for", "6.6.6.6, 192.0.2.1")), "192.0.2.1"),
        (Call(("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "6.6.6.7,2001:db8::1")), "2001:db8::1"),
        (Call(), "ipv4:203.0.113.9"),
        (Call(peer="ipv6:%5B::1%5D:41234"), "ipv6:%5B::1%5D"),
        (Call(peer="unix:"), "unix"),
    ],
)
def test_a_call_comes_from_where_the_gateway_saw_it(call: Call, source: str) -> None:
    assert auth._sent_by(call) == ("", source)  # type: ignore[arg-type]
