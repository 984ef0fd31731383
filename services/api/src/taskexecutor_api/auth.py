"""Who calls: the API key decides the namespace and what may be done in it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

import grpc

from taskexecutor_api.rate_limit import RateLimiter
from taskexecutor_common.api_keys import parse_key
from taskexecutor_common.errors import Forbidden, RateLimited, Unauthorized
from taskexecutor_common.model.setup import ApiKey, Scope
from taskexecutor_common.rpc.calls import Context, Handler
from taskexecutor_common.store.api_keys import ApiKeyStore

_PREFIX = "/taskexecutor.v1."
_ADMIN = f"{_PREFIX}ApiKeyService/"
_READS = ("Get", "List", "Preview", "Render")
_MAX_CACHED = 10_000
_MAX_KEY_CHARS = 200


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
    """Looks keys up and trusts what it found for `ttl_sec`: a revoked key is refused after that at the latest."""

    def __init__(self, store: ApiKeyStore, ttl_sec: float) -> None:
        self._store = store
        self._ttl_sec = ttl_sec
        self._known: dict[str, tuple[ApiKey, float]] = {}

    async def authenticate(self, authorization: str) -> Caller:
        """The caller of an `Authorization` header. Raises Unauthorized without saying what exactly was wrong."""
        scheme, _, text = authorization.partition(" ")
        parsed = parse_key(text.strip()) if scheme.lower() == "bearer" and len(text) <= _MAX_KEY_CHARS else None
        if parsed is None:
            raise Unauthorized("an API key is required: 'Authorization: Bearer te_<id>_<secret>'")
        key = await self._find(parsed.key_id)
        if key is None or not parsed.matches(key.secret_hash) or not key.usable:
            raise Unauthorized("the API key is unknown, expired or revoked")
        return Caller(key.key_id, key.namespace, frozenset(key.scopes))

    async def _find(self, key_id: str) -> ApiKey | None:
        entry = self._known.get(key_id)
        if entry is not None and time.monotonic() - entry[1] < self._ttl_sec:
            return entry[0]
        key = await self._store.find(key_id)
        if key is None:
            self._known.pop(key_id, None)
            return None
        if len(self._known) >= _MAX_CACHED:
            self._known.pop(next(iter(self._known)))
        self._known[key_id] = (key, time.monotonic())
        return key


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
            caller = await self._keys.authenticate(_authorization(context))
            wait = self._limiter.admit(caller.key_id)
            if wait > 0:
                raise RateLimited("this API key sends more requests than its rate allows", retry_after=wait)
            caller.require(scope)
            CALLER.set(caller)
            return await inner(request, context)

        return admit


def _authorization(context: Context) -> str:
    for key, value in context.invocation_metadata() or ():
        if key == "authorization" and isinstance(value, str):
            return value
    return ""
