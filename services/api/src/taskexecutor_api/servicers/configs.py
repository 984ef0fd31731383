"""ConfigService on the wire."""

from __future__ import annotations

from google.protobuf.empty_pb2 import Empty

from taskexecutor.v1 import config_pb2 as pb
from taskexecutor.v1 import config_pb2_grpc
from taskexecutor_api import convert, pages
from taskexecutor_api.auth import namespace
from taskexecutor_api.operations import configs as operations
from taskexecutor_api.replies import created, deleted
from taskexecutor_api.validate import page_size, require_name, require_object
from taskexecutor_common.errors import ConfigNotFound
from taskexecutor_common.model.setup import Config
from taskexecutor_common.rpc.calls import Context
from taskexecutor_common.store.setup import SetupStore


class ConfigServicer(config_pb2_grpc.ConfigServiceServicer):
    """See config.proto."""

    def __init__(self, store: SetupStore) -> None:
        self._store = store

    async def CreateConfig(self, request: pb.CreateConfigRequest, context: Context) -> pb.Config:
        """See config.proto."""
        name, values = require_name(request.name), require_object(request, "values")
        config = await operations.create_config(self._store, namespace(), name, values)
        await created(context)
        return convert.config(config)

    async def ListConfigs(self, request: pb.ListConfigsRequest, context: Context) -> pb.ListConfigsResponse:
        """See config.proto."""
        limit, filters = page_size(request), [namespace()]
        before = pages.read_cursor(request, "configs", filters, pages.instant, pages.name) or pages.NEWEST_BY_NAME
        rows = await self._store.list_configs(namespace(), before, limit + 1)
        page, cursor = pages.cut(rows, limit, lambda row: (row.created_at, row.name), "configs", filters)
        return pb.ListConfigsResponse(items=map(convert.config, page), cursor=cursor)

    async def GetConfig(self, request: pb.GetConfigRequest, context: Context) -> pb.Config:
        """See config.proto."""
        return convert.config(await self._find(request.name))

    async def UpdateConfig(self, request: pb.UpdateConfigRequest, context: Context) -> pb.Config:
        """See config.proto."""
        values = require_object(request, "values")
        return convert.config(await operations.update_config(self._store, namespace(), request.name, values))

    async def DeleteConfig(self, request: pb.DeleteConfigRequest, context: Context) -> Empty:
        """See config.proto."""
        await operations.delete_config(self._store, namespace(), request.name)
        return await deleted(context)

    async def ListConfigRevisions(
        self, request: pb.ListConfigRevisionsRequest, context: Context
    ) -> pb.ListConfigRevisionsResponse:
        """See config.proto."""
        limit = page_size(request)
        config = await self._find(request.name)
        filters = [namespace(), config.config_id]
        (before,) = pages.read_cursor(request, "config-revisions", filters, pages.number) or (pages.LARGEST_NUMBER,)
        rows = await self._store.list_config_revisions(config.config_id, before, limit + 1)
        page, cursor = pages.cut(rows, limit, lambda row: (row.revision,), "config-revisions", filters)
        items = [convert.config_revision(config.name, revision) for revision in page]
        return pb.ListConfigRevisionsResponse(items=items, cursor=cursor)

    async def _find(self, name: str) -> Config:
        config = await self._store.get_config(namespace(), name)
        if config is None:
            raise ConfigNotFound.named(name)
        return config
