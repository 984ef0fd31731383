"""SecretService on the wire: values come in and never go out."""

from __future__ import annotations

from google.protobuf.empty_pb2 import Empty

from taskexecutor.v1 import secret_pb2 as pb
from taskexecutor.v1 import secret_pb2_grpc
from taskexecutor_api import convert, pages
from taskexecutor_api.auth import namespace
from taskexecutor_api.operations import secrets as operations
from taskexecutor_api.replies import created, deleted
from taskexecutor_api.validate import page_size, require_bytes, require_name
from taskexecutor_common.crypto import KeyRing
from taskexecutor_common.errors import SecretNotFound
from taskexecutor_common.rpc.calls import Context
from taskexecutor_common.rpc.hints import DispatcherHints
from taskexecutor_common.store.setup import SetupStore

_MAX_VALUE_BYTES = 64 * 1024


class SecretServicer(secret_pb2_grpc.SecretServiceServicer):
    """See secret.proto."""

    def __init__(self, store: SetupStore, keys: KeyRing, hints: DispatcherHints) -> None:
        self._store = store
        self._keys = keys
        self._hints = hints

    async def CreateSecret(self, request: pb.CreateSecretRequest, context: Context) -> pb.Secret:
        """See secret.proto."""
        name, value = require_name(request.name), require_bytes(request.value, "value", most=_MAX_VALUE_BYTES)
        secret = await operations.create_secret(self._store, self._keys, namespace(), name, value)
        await created(context)
        return convert.secret(secret)

    async def ListSecrets(self, request: pb.ListSecretsRequest, context: Context) -> pb.ListSecretsResponse:
        """See secret.proto."""
        limit, filters = page_size(request), [namespace()]
        before = pages.read_cursor(request, "secrets", filters, pages.instant, pages.name) or pages.NEWEST_BY_NAME
        rows = await self._store.list_secrets(namespace(), before, limit + 1)
        page, cursor = pages.cut(rows, limit, lambda row: (row.created_at, row.name), "secrets", filters)
        return pb.ListSecretsResponse(items=map(convert.secret, page), cursor=cursor)

    async def GetSecret(self, request: pb.GetSecretRequest, context: Context) -> pb.Secret:
        """See secret.proto."""
        secret = await self._store.get_secret(namespace(), request.name)
        if secret is None:
            raise SecretNotFound.named(request.name)
        return convert.secret(secret)

    async def UpdateSecret(self, request: pb.UpdateSecretRequest, context: Context) -> pb.Secret:
        """See secret.proto."""
        value = require_bytes(request.value, "value", most=_MAX_VALUE_BYTES)
        return convert.secret(
            await operations.rotate_secret(self._store, self._keys, self._hints, namespace(), request.name, value)
        )

    async def DeleteSecret(self, request: pb.DeleteSecretRequest, context: Context) -> Empty:
        """See secret.proto."""
        await operations.delete_secret(self._store, self._hints, namespace(), request.name)
        return await deleted(context)
