"""ApiKeyService on the wire."""

from __future__ import annotations

from datetime import datetime

from google.protobuf.empty_pb2 import Empty

from taskexecutor.v1 import api_key_pb2 as pb
from taskexecutor.v1 import api_key_pb2_grpc
from taskexecutor_api import convert, pages
from taskexecutor_api.auth import namespace
from taskexecutor_api.replies import created, deleted
from taskexecutor_api.validate import optional_time, page_size, require_enum, require_text
from taskexecutor_common.api_keys import generate_key, parse_key
from taskexecutor_common.clock import Clock
from taskexecutor_common.errors import ApiKeyNotFound, InvalidRequest, Unavailable
from taskexecutor_common.model.setup import Scope
from taskexecutor_common.rpc.calls import Context
from taskexecutor_common.store.api_keys import ApiKeyStore

_MAX_NAME_CHARS = 128


class ApiKeyServicer(api_key_pb2_grpc.ApiKeyServiceServicer):
    """See api_key.proto."""

    def __init__(self, store: ApiKeyStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def CreateApiKey(self, request: pb.CreateApiKeyRequest, context: Context) -> pb.CreateApiKeyResponse:
        """See api_key.proto."""
        name = require_text(request.name, "name", most=_MAX_NAME_CHARS)
        if not request.scopes:
            raise InvalidRequest("scopes: is required; at least one of read, write, admin", field="scopes")
        scopes = {
            Scope(require_enum(scope, pb.ApiKey.Scope, f"scopes.{index}")) for index, scope in enumerate(request.scopes)
        }
        key = generate_key()
        parsed = parse_key(key)
        assert parsed is not None  # it was just made
        info = await self._store.create(
            parsed.key_id,
            parsed.secret_hash,
            namespace=namespace(),
            name=name,
            scopes=sorted(scopes),
            expires_at=self._expiry(request),
        )
        if info is None:
            raise Unavailable("the new key's id is taken; try again", retry_after=1)
        await created(context)
        return pb.CreateApiKeyResponse(api_key=convert.api_key(info), key=key)

    async def ListApiKeys(self, request: pb.ListApiKeysRequest, context: Context) -> pb.ListApiKeysResponse:
        """See api_key.proto."""
        limit, filters = page_size(request), [namespace()]
        before = pages.read_cursor(request, "api-keys", filters, pages.instant, pages.name) or pages.NEWEST_BY_NAME
        rows = await self._store.list_page(namespace(), before, limit + 1)
        page, cursor = pages.cut(rows, limit, lambda row: (row.created_at, row.key_id), "api-keys", filters)
        return pb.ListApiKeysResponse(items=map(convert.api_key, page), cursor=cursor)

    async def RevokeApiKey(self, request: pb.RevokeApiKeyRequest, context: Context) -> Empty:
        """See api_key.proto."""
        if not await self._store.revoke(namespace(), request.key_id):
            raise ApiKeyNotFound.named(request.key_id)
        return await deleted(context)

    def _expiry(self, request: pb.CreateApiKeyRequest) -> datetime | None:
        """When the key expires. A time in the past is refused as a mistake; this process's clock may be a little off, and
        what it lets through is judged by the database's like any other."""
        expires_at = optional_time(request, "expires_at")
        if expires_at is not None and expires_at <= self._clock.now():
            raise InvalidRequest("expires_at: lies in the past, so the key would never work", field="expires_at")
        return expires_at
