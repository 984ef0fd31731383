"""Who calls: the API key decides the namespace and what may be done in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

import grpc

from taskexecutor_api.rate_limit import RateLimiter
from taskexecutor_common.api_keys import ParsedKey, parse_key
from taskexecutor_common.errors import Forbidden, RateLimited, Unauthorized
from taskexecutor_common.model.setup import ApiKey, Scope
from taskexecutor_common.rpc.calls import Context, Handler
from taskexecutor_common.store.api_keys import ApiKeyStore

_PREFIX = "/taskexecutor.v1."
_ADMIN = f"{_PREFIX}ApiKeyService/"
_READS = ("Get", "List", "Preview", "Render")
_MAX_CACHED = 10_000
_MAX_KEY_CHARS = 200
_NO_HASH = bytes(32)  # of no secret that anybody can send

# Per key id and source. Whoever mistypes a key may try again at once; a secret of 8 hex digits, the shortest there may be,
# takes a lifetime.
_GUESSES_PER_SEC, _GUESSES_AT_ONCE = 1.0, 20
# Per source, in lookups that found no good key.
_MISSES_PER_SEC, _MISSES_AT_ONCE = 10.0, 200


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller."""

    key_id: str
    namespace: str
    scopes: frozenset[str]

    def require(self, scope: Scope) -> None:
        """Raises Forbidden when the key lacks the scope; `admin` includes all."""
        if scope.value not in self.scopes and Scope.ADMIN.value not in self.scopes:
            raise Forbidden(f"this API key lacks the scope '{scope.value}'")


CALLER: ContextVar[Caller] = ContextVar("caller")
"""The caller of the call that is being answered."""


def namespace() -> str:
    """The namespace of the call that is being answered."""
    return CALLER.get().namespace


def scope_of(method: str) -> Scope:
    """What a method asks for: `admin` where keys are dealt with, else by its standard name."""
    if method.startswith(_ADMIN):
        return Scope.ADMIN
    return Scope.READ if method.rpartition("/")[2].startswith(_READS) else Scope.WRITE


class KeyRegistry:
    """Looks keys up and trusts a good one for `ttl_sec`: a revoked or expired key is refused after that at the latest. What
    is known of a key never refuses by itself, only what the database, by its own clock, says now can.

    Guessing is limited twice, each time by the machine that the guesses come from, so that nobody can lock a key out from
    elsewhere:

    - tries at one key id that were refused. Beyond the limit the key is not even looked at, be it right or wrong: to go on
      looking would tell which guess is right. This bounds how fast the secret of a key can be guessed.
    - lookups that found no good key, whatever their ids. This bounds what made-up ids cost the database. Keys that were
      good before are spared; they are looked up once in `ttl_sec` each.

    An unknown id and a wrong secret cost the same and are answered alike: a lookup and a comparison.
    """

    def __init__(
        self,
        store: ApiKeyStore,
        ttl_sec: float,
        *,
        guesses: RateLimiter | None = None,
        misses: RateLimiter | None = None,
    ) -> None:
        self._store = store
        self._ttl_sec = ttl_sec
        self._guesses = guesses or RateLimiter(_GUESSES_PER_SEC, _GUESSES_AT_ONCE)
        self._misses = misses or RateLimiter(_MISSES_PER_SEC, _MISSES_AT_ONCE)
        self._known: dict[str, tuple[ApiKey, float]] = {}
        self._lookups: dict[str, asyncio.Task[ApiKey | None]] = {}

    async def authenticate(self, authorization: str, source: str) -> Caller:
        """The caller of an `Authorization` header that came from `source`, the address of a machine.

        Raises Unauthorized without saying what exactly was wrong, and RateLimited.
        """
        scheme, _, text = authorization.partition(" ")
        parsed = parse_key(text.strip()) if scheme.lower() == "bearer" and len(text) <= _MAX_KEY_CHARS else None
        if parsed is None:
            raise Unauthorized("an API key is required: 'Authorization: Bearer te_<id>_<secret>'")
        self._refuse_guesses(parsed, source)
        key, since = self._known.get(parsed.key_id, (None, 0.0))
        if not _opens(parsed, key):
            key = await self._look_up_at_cost(parsed, source)
        elif time.monotonic() - since >= self._ttl_sec:
            key = self._judged(parsed, source, await self._look_up(parsed.key_id))
        assert key is not None  # nobody opens what is not there
        return Caller(key.key_id, key.namespace, frozenset(key.scopes))

    async def _look_up_at_cost(self, parsed: ParsedKey, source: str) -> ApiKey:
        """For keys that nobody knows to be good. Whoever begins a lookup pays for it, unless it finds a good key."""
        if parsed.key_id in self._lookups:
            return self._judged(parsed, source, await self._look_up(parsed.key_id))
        if wait := self._misses.admit(source):
            raise RateLimited("too many API keys from this address were refused", retry_after=wait)
        is_miss = False
        try:
            return self._judged(parsed, source, await self._look_up(parsed.key_id))
        except Unauthorized:
            is_miss = True
            raise
        finally:
            if not is_miss:
                self._misses.give_back(source)

    def _judged(self, parsed: ParsedKey, source: str, key: ApiKey | None) -> ApiKey:
        """The key that was just looked up, if it is good. Raises Unauthorized, which counts, and RateLimited."""
        self._refuse_guesses(parsed, source)  # guesses that come all at once are counted one by one
        if not _opens(parsed, key) or key is None:  # in this order, so that what is not there is compared, too
            self._guesses.admit((parsed.key_id, source))
            raise Unauthorized("the API key is unknown, expired or revoked")
        return key

    def _refuse_guesses(self, parsed: ParsedKey, source: str) -> None:
        if wait := self._guesses.wait((parsed.key_id, source)):
            raise RateLimited("this API key was refused too often from this address", retry_after=wait)

    async def _look_up(self, key_id: str) -> ApiKey | None:
        """What the database says of a key now, asked once for all that ask at the same time."""
        lookup = self._lookups.get(key_id)
        if lookup is None:
            lookup = self._lookups[key_id] = asyncio.create_task(self._find(key_id))
            lookup.add_done_callback(lambda _: self._lookups.pop(key_id, None))
        return await asyncio.shield(lookup)

    async def _find(self, key_id: str) -> ApiKey | None:
        asked = time.monotonic()
        key = await self._store.find(key_id)
        self._known.pop(key_id, None)
        if key is not None:
            if len(self._known) >= _MAX_CACHED:
                self._known.pop(next(iter(self._known)))
            self._known[key_id] = (key, asked)
        return key


def _opens(parsed: ParsedKey, key: ApiKey | None) -> bool:
    """True when the key is good. All is compared, whatever is wrong first: an id that is not there takes as long."""
    matches = parsed.matches(_NO_HASH if key is None else key.secret_hash)
    return matches and key is not None and key.usable


class AuthInterceptor(grpc.aio.ServerInterceptor):
    """Lets a call of the public services through only with a key, a scope and within its rate."""

    def __init__(self, keys: KeyRegistry, limiter: RateLimiter) -> None:
        self._keys = keys
        self._limiter = limiter

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Called by grpc for each call."""
        handler = await continuation(handler_call_details)
        method = str(handler_call_details.method)
        if handler is None or not method.startswith(_PREFIX):
            return handler
        return grpc.unary_unary_rpc_method_handler(
            self._admitting(scope_of(method), cast(Handler, handler.unary_unary)),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _admitting(self, scope: Scope, inner: Handler) -> Handler:
        async def admit(request: Any, context: Context) -> Any:
            caller = await self._keys.authenticate(*_sent_by(context))
            wait = self._limiter.admit(caller.key_id)
            if wait > 0:
                raise RateLimited("this API key sends more requests than its rate allows", retry_after=wait)
            caller.require(scope)
            CALLER.set(caller)
            return await inner(request, context)

        return admit


def _sent_by(context: Context) -> tuple[str, str]:
    """The `Authorization` header of a call, and the machine that sent it as the gateway saw it: the last address in
    `x-forwarded-for` is the gateway's own word, those before it are the caller's. Without a gateway it is the peer."""
    authorization, forwarded = "", ""
    for key, value in context.invocation_metadata() or ():
        if key == "authorization" and isinstance(value, str):
            authorization = authorization or value
        elif key == "x-forwarded-for" and isinstance(value, str):
            forwarded = value
    return authorization, forwarded.rpartition(",")[2].strip() or context.peer().rpartition(":")[0]
