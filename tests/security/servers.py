"""The api's door as main.py wires it: real gRPC, real keys in a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio

from taskexecutor.v1 import api_key_pb2_grpc, config_pb2_grpc
from taskexecutor_api.auth import AuthInterceptor, KeyRegistry
from taskexecutor_api.rate_limit import RateLimiter
from taskexecutor_api.servicers.api_keys import ApiKeyServicer
from taskexecutor_api.servicers.configs import ConfigServicer
from taskexecutor_common.api_keys import generate_key, parse_key
from taskexecutor_common.clock import Clock
from taskexecutor_common.model.setup import Scope
from taskexecutor_common.rpc.server import RpcServer
from taskexecutor_common.store.api_keys import ApiKeyStore
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.setup import SetupStore

NAMESPACE = "default"


@asynccontextmanager
async def door(db: Database, *, ttl_sec: float = 5.0) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to an api that knows keys and configs."""
    auth = AuthInterceptor(KeyRegistry(ApiKeyStore(db), ttl_sec), RateLimiter(10_000, 10_000))
    rpc = RpcServer("127.0.0.1:0", grace_sec=0.1, interceptors=[auth])
    api_key_pb2_grpc.add_ApiKeyServiceServicer_to_server(ApiKeyServicer(ApiKeyStore(db), Clock()), rpc.server)
    config_pb2_grpc.add_ConfigServiceServicer_to_server(ConfigServicer(SetupStore(db)), rpc.server)
    await rpc.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{rpc.port}") as channel:
            yield channel
    finally:
        await rpc.stop()


async def a_key(db: Database, *scopes: Scope) -> str:
    """A key in the database, with all scopes unless some are named."""
    key = generate_key()
    parsed = parse_key(key)
    assert parsed is not None
    scopes = scopes or tuple(Scope)
    await ApiKeyStore(db).ensure(parsed.key_id, parsed.secret_hash, namespace=NAMESPACE, name="test", scopes=scopes)
    return key


def sent_with(key: str, source: str = "192.0.2.1") -> dict[str, Any]:
    """What a call carries that came with a key from a machine, as the gateway passes it on."""
    return {"metadata": [("authorization", f"Bearer {key}"), ("x-forwarded-for", source)], "timeout": 10}
