"""EndpointService on the wire."""

from __future__ import annotations

from google.protobuf.empty_pb2 import Empty

from taskexecutor.v1 import endpoint_pb2 as pb
from taskexecutor.v1 import endpoint_pb2_grpc
from taskexecutor_api import convert, pages
from taskexecutor_api.auth import namespace
from taskexecutor_api.endpoint_catalog import EndpointCatalog
from taskexecutor_api.operations.find_endpoint import find_endpoint
from taskexecutor_api.operations.pause_endpoint import pause_endpoint, resume_endpoint
from taskexecutor_api.operations.preview_delivery import DeliveryPreview
from taskexecutor_api.operations.register_endpoint import (
    checked_type,
    create_endpoint,
    delete_endpoint,
    update_endpoint,
)
from taskexecutor_api.replies import created, deleted
from taskexecutor_api.validate import (
    optional_enum,
    optional_object,
    page_size,
    require_endpoint_name,
    require_enum,
)
from taskexecutor_api.wanted_endpoint import read_registration
from taskexecutor_common.model.endpoint import Endpoint, EndpointType
from taskexecutor_common.rpc.calls import Context
from taskexecutor_common.rpc.hints import DispatcherHints
from taskexecutor_common.store.endpoints import EndpointStore
from taskexecutor_common.store.flow import FlowStore
from taskexecutor_common.store.setup import SetupStore


class EndpointServicer(endpoint_pb2_grpc.EndpointServiceServicer):
    """See endpoint.proto."""

    def __init__(
        self,
        endpoints: EndpointStore,
        flows: FlowStore,
        setup: SetupStore,
        catalog: EndpointCatalog,
        preview: DeliveryPreview,
        hints: DispatcherHints,
    ) -> None:
        self._endpoints = endpoints
        self._flows = flows
        self._setup = setup
        self._catalog = catalog
        self._preview = preview
        self._hints = hints

    async def CreateEndpoint(self, request: pb.CreateEndpointRequest, context: Context) -> pb.Endpoint:
        """See endpoint.proto."""
        name = require_endpoint_name(request.name)
        endpoint_type = EndpointType(require_enum(request.type, pb.Endpoint.Type, "type"))
        wanted = read_registration(request, endpoint_type)
        endpoint = await create_endpoint(self._endpoints, self._setup, namespace(), name, wanted)
        answer = await self._show(endpoint)
        await created(context)
        return answer

    async def ListEndpoints(self, request: pb.ListEndpointsRequest, context: Context) -> pb.ListEndpointsResponse:
        """See endpoint.proto."""
        limit = page_size(request)
        wanted = optional_enum(request.type, pb.Endpoint.Type, "type")
        filters = [namespace(), wanted]
        before = pages.read_cursor(request, "endpoints", filters, pages.instant, pages.name) or pages.NEWEST_BY_NAME
        rows = await self._endpoints.list_page(namespace(), EndpointType(wanted) if wanted else None, before, limit + 1)
        page, cursor = pages.cut(rows, limit, lambda row: (row.created_at, row.name), "endpoints", filters)
        flows = await self._flows.get([endpoint.endpoint_id for endpoint in page])
        items = [convert.endpoint(endpoint, flows.get(endpoint.endpoint_id)) for endpoint in page]
        return pb.ListEndpointsResponse(items=items, cursor=cursor)

    async def GetEndpoint(self, request: pb.GetEndpointRequest, context: Context) -> pb.Endpoint:
        """See endpoint.proto."""
        return await self._show(await find_endpoint(self._endpoints, namespace(), request.name))

    async def UpdateEndpoint(self, request: pb.UpdateEndpointRequest, context: Context) -> pb.Endpoint:
        """See endpoint.proto."""
        wanted_type = optional_enum(request.type, pb.Endpoint.Type, "type")
        current = await find_endpoint(self._endpoints, namespace(), request.name)
        endpoint_type = checked_type(current, EndpointType(wanted_type) if wanted_type else None)
        wanted = read_registration(request, endpoint_type)
        endpoint = await update_endpoint(self._endpoints, self._setup, self._hints, namespace(), request.name, wanted)
        self._catalog.forget(namespace(), request.name)
        return await self._show(endpoint)

    async def DeleteEndpoint(self, request: pb.DeleteEndpointRequest, context: Context) -> Empty:
        """See endpoint.proto."""
        await delete_endpoint(self._endpoints, namespace(), request.name)
        self._catalog.forget(namespace(), request.name)
        return await deleted(context)

    async def PauseEndpoint(self, request: pb.PauseEndpointRequest, context: Context) -> pb.Endpoint:
        """See endpoint.proto."""
        endpoint = await pause_endpoint(self._endpoints, self._flows, namespace(), request.name)
        return await self._show(endpoint)

    async def ResumeEndpoint(self, request: pb.ResumeEndpointRequest, context: Context) -> pb.Endpoint:
        """See endpoint.proto."""
        endpoint = await resume_endpoint(self._endpoints, self._flows, self._hints, namespace(), request.name)
        return await self._show(endpoint)

    async def ListEndpointRevisions(
        self, request: pb.ListEndpointRevisionsRequest, context: Context
    ) -> pb.ListEndpointRevisionsResponse:
        """See endpoint.proto."""
        limit = page_size(request)
        endpoint = await find_endpoint(self._endpoints, namespace(), request.name)
        filters = [namespace(), endpoint.endpoint_id]
        (before,) = pages.read_cursor(request, "endpoint-revisions", filters, pages.number) or (pages.LARGEST_NUMBER,)
        rows = await self._endpoints.list_revisions(endpoint, before, limit + 1)
        page, cursor = pages.cut(rows, limit, lambda row: (row.revision,), "endpoint-revisions", filters)
        return pb.ListEndpointRevisionsResponse(items=map(convert.endpoint_revision, page), cursor=cursor)

    async def RenderEndpoint(self, request: pb.RenderEndpointRequest, context: Context) -> pb.RenderEndpointResponse:
        """See endpoint.proto."""
        value = optional_object(request, "input") or {}
        preview = await self._preview.render(namespace(), request.name, value)
        return pb.RenderEndpointResponse(
            type=preview.endpoint.endpoint_type.value,
            revision=preview.endpoint.revision,
            rendered=convert.to_struct(preview.rendered),
        )

    async def TestEndpoint(self, request: pb.TestEndpointRequest, context: Context) -> pb.TestEndpointResponse:
        """See endpoint.proto."""
        value = optional_object(request, "input") or {}
        preview, answer = await self._preview.send(namespace(), request.name, value)
        return pb.TestEndpointResponse(
            rendered=convert.to_struct(preview.rendered),
            status="FAILED" if answer.error else "SUCCESS",
            output=None if answer.output is None else convert.to_struct(answer.output),
            error=convert.attempt_error(answer.error),
            duration_ms=answer.duration_ms,
        )

    async def _show(self, endpoint: Endpoint) -> pb.Endpoint:
        """The endpoint with where its flow stands now."""
        flows = await self._flows.get([endpoint.endpoint_id])
        return convert.endpoint(endpoint, flows.get(endpoint.endpoint_id))
