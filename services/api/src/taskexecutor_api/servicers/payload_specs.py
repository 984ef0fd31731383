"""PayloadSpecService on the wire."""

from __future__ import annotations

from google.protobuf.empty_pb2 import Empty

from taskexecutor.v1 import payload_spec_pb2 as pb
from taskexecutor.v1 import payload_spec_pb2_grpc
from taskexecutor_api import convert, pages
from taskexecutor_api.auth import namespace
from taskexecutor_api.operations import payload_specs as operations
from taskexecutor_api.replies import created, deleted
from taskexecutor_api.validate import page_size, require_name, require_object
from taskexecutor_common.errors import PayloadSpecNotFound
from taskexecutor_common.rpc.calls import Context
from taskexecutor_common.store.setup import SetupStore


class PayloadSpecServicer(payload_spec_pb2_grpc.PayloadSpecServiceServicer):
    """See payload_spec.proto."""

    def __init__(self, store: SetupStore) -> None:
        self._store = store

    async def CreatePayloadSpec(self, request: pb.CreatePayloadSpecRequest, context: Context) -> pb.PayloadSpec:
        """See payload_spec.proto."""
        name, schema = require_name(request.name), require_object(request, "schema")
        spec = await operations.create_payload_spec(self._store, namespace(), name, schema)
        await created(context)
        return convert.payload_spec(spec)

    async def ListPayloadSpecs(
        self, request: pb.ListPayloadSpecsRequest, context: Context
    ) -> pb.ListPayloadSpecsResponse:
        """See payload_spec.proto."""
        limit, filters = page_size(request), [namespace()]
        before = pages.read_cursor(request, "payload-specs", filters, pages.instant, pages.name) or pages.NEWEST_BY_NAME
        rows = await self._store.list_payload_specs(namespace(), before, limit + 1)
        page, cursor = pages.cut(rows, limit, lambda row: (row.created_at, row.name), "payload-specs", filters)
        return pb.ListPayloadSpecsResponse(items=map(convert.payload_spec, page), cursor=cursor)

    async def GetPayloadSpec(self, request: pb.GetPayloadSpecRequest, context: Context) -> pb.PayloadSpec:
        """See payload_spec.proto."""
        spec = await self._store.get_payload_spec(namespace(), request.name)
        if spec is None:
            raise PayloadSpecNotFound.named(request.name)
        return convert.payload_spec(spec)

    async def UpdatePayloadSpec(self, request: pb.UpdatePayloadSpecRequest, context: Context) -> pb.PayloadSpec:
        """See payload_spec.proto."""
        schema = require_object(request, "schema")
        return convert.payload_spec(
            await operations.update_payload_spec(self._store, namespace(), request.name, schema)
        )

    async def DeletePayloadSpec(self, request: pb.DeletePayloadSpecRequest, context: Context) -> Empty:
        """See payload_spec.proto."""
        await operations.delete_payload_spec(self._store, namespace(), request.name)
        return await deleted(context)
