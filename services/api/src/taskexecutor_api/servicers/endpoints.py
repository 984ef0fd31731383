"""EndpointService on the wire."""

from __future__ import annotations

from google.protobuf.empty_pb2 import Empty

from taskexecutor.v1 import endpoint_pb2 as pb
from taskexecutor.v1 import endpoint_pb2_grpc
from taskexecutor_api import convert, pages
from taskexecutor_api.auth import namespace
from taskexecutor_api.endpoint_catalog import EndpointCatalog
from taskexecutor_api.operations import register_endpoint as operations
from taskexecutor_api.operations.preview_delivery import DeliveryPreview
from taskexecutor_api.replies import created, deleted
from taskexecutor_api.validate import (
    optional_enum,
    optional_object,
    page_size,
    require_endpoint_name,
    require_enum,
    require_name,
    require_object,
    within,
)
from taskexecutor_common.errors import EndpointNotFound
from taskexecutor_common.model.endpoint import Backoff, Endpoint, EndpointType, RetryPolicy
from taskexecutor_common.rpc.calls import Context
from taskexecutor_common.store.endpoints import EndpointStore
from taskexecutor_common.store.setup import SetupStore

_ALL_REVISIONS = 2**31 - 1
_MAX_DELAY_MS = 86_400_000


class EndpointServicer(endpoint_pb2_grpc.EndpointServiceServicer):
    """See endpoint.proto."""

    def __init__(
        self, endpoints: EndpointStore, setup: SetupStore, catalog: EndpointCatalog, preview: DeliveryPreview
    ) -> None:
        self._endpoints = endpoints
        self._setup = setup
        self._catalog = catalog
        self._preview = preview

    async def CreateEndpoint(self, request: pb.CreateEndpointRequest, context: Context) -> pb.Endpoint:
        """See endpoint.proto."""
        name = require_endpoint_name(request.name)
        endpoint_type = EndpointType(require_enum(request.type, pb.Endpoint.Type.items(), "type"))
        wanted = _registration(request, endpoint_type)
        endpoint = await operations.create_endpoint(self._endpoints, self._setup, namespace(), name, wanted)
        await created(context)
        return convert.endpoint(endpoint)

    async def ListEndpoints(self, request: pb.ListEndpointsRequest, context: Context) -> pb.ListEndpointsResponse:
        """See endpoint.proto."""
        limit = page_size(request)
        wanted = optional_enum(request.type, pb.Endpoint.Type.items(), "type")
        filters = [namespace(), wanted]
        before = pages.time_key(pages.read_cursor(request, "endpoints", filters), pages.LAST_NAME, str)
        rows = await self._endpoints.list_page(namespace(), EndpointType(wanted) if wanted else None, before, limit + 1)
        page, cursor = pages.cut(rows, limit, lambda row: (row.created_at, row.name), "endpoints", filters)
        return pb.ListEndpointsResponse(items=map(convert.endpoint, page), cursor=cursor)

    async def GetEndpoint(self, request: pb.GetEndpointRequest, context: Context) -> pb.Endpoint:
        """See endpoint.proto."""
        return convert.endpoint(await self._find(request.name))

    async def UpdateEndpoint(self, request: pb.UpdateEndpointRequest, context: Context) -> pb.Endpoint:
        """See endpoint.proto."""
        wanted_type = optional_enum(request.type, pb.Endpoint.Type.items(), "type")
        current = await self._find(request.name)
        endpoint_type = operations.checked_type(current, EndpointType(wanted_type) if wanted_type else None)
        endpoint = await operations.update_endpoint(
            self._endpoints, self._setup, namespace(), request.name, _registration(request, endpoint_type)
        )
        self._catalog.forget(namespace(), request.name)
        return convert.endpoint(endpoint)

    async def DeleteEndpoint(self, request: pb.DeleteEndpointRequest, context: Context) -> Empty:
        """See endpoint.proto."""
        await operations.delete_endpoint(self._endpoints, namespace(), request.name)
        self._catalog.forget(namespace(), request.name)
        return await deleted(context)

    async def ListEndpointRevisions(
        self, request: pb.ListEndpointRevisionsRequest, context: Context
    ) -> pb.ListEndpointRevisionsResponse:
        """See endpoint.proto."""
        limit = page_size(request)
        endpoint = await self._find(request.name)
        filters = [namespace(), endpoint.endpoint_id]
        key = pages.read_cursor(request, "endpoint-revisions", filters)
        before = _ALL_REVISIONS if key is None else int(key[0])
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

    async def _find(self, name: str) -> Endpoint:
        endpoint = await self._endpoints.get(namespace(), name)
        if endpoint is None:
            raise EndpointNotFound.named(name)
        return endpoint


def _registration(
    request: pb.CreateEndpointRequest | pb.UpdateEndpointRequest, endpoint_type: EndpointType
) -> operations.Registration:
    return operations.Registration(
        endpoint_type=endpoint_type,
        payload_spec=require_name(request.payload_spec, "payload_spec") if request.HasField("payload_spec") else None,
        config=require_name(request.config, "config") if request.HasField("config") else None,
        spec=require_object(request, "spec"),
        retry_policy=_retry_policy(request.retry_policy),
    )


def _retry_policy(policy: pb.RetryPolicy) -> RetryPolicy:
    """The policy with its defaults; an absent message is all defaults."""
    default = RetryPolicy()
    backoff = optional_enum(policy.backoff, pb.RetryPolicy.Backoff.items(), "retry_policy.backoff")
    statuses = [
        within(status, f"retry_policy.non_retryable_status_codes.{index}", least=100, most=599)
        for index, status in enumerate(policy.non_retryable_status_codes)
    ]
    return RetryPolicy(
        max_attempts=_setting(policy, "max_attempts", default.max_attempts, least=1, most=100),
        backoff=Backoff(backoff) if backoff else default.backoff,
        initial_delay_ms=_setting(policy, "initial_delay_ms", default.initial_delay_ms, least=0, most=_MAX_DELAY_MS),
        max_delay_ms=_setting(policy, "max_delay_ms", default.max_delay_ms, least=0, most=_MAX_DELAY_MS),
        non_retryable_status_codes=tuple(sorted(set(statuses))),
    )


def _setting(policy: pb.RetryPolicy, field: str, default: int, *, least: int, most: int) -> int:
    if not policy.HasField(field):
        return default
    return within(getattr(policy, field), f"retry_policy.{field}", least=least, most=most)
