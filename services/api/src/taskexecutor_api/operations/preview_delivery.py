"""What an endpoint would send for an input, and sending it once."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import grpc
import orjson

from taskexecutor.internal.v1 import dispatcher_pb2, dispatcher_pb2_grpc
from taskexecutor_api.endpoint_catalog import EndpointCatalog
from taskexecutor_api.input_checks import InputChecks
from taskexecutor_api.validate import MAX_JSON_BYTES
from taskexecutor_common.clock import Clock, rfc3339
from taskexecutor_common.endpoint_types.base import CompiledSpec, DeliveryIdentity, InvalidDestination
from taskexecutor_common.endpoint_types.registry import kind_of
from taskexecutor_common.errors import InvalidConfigRef, TemplateResolutionFailed, Unavailable
from taskexecutor_common.masking import Mask
from taskexecutor_common.model.endpoint import Endpoint
from taskexecutor_common.model.setup import Config
from taskexecutor_common.rpc.hints import Peers
from taskexecutor_common.store.setup import SetupStore
from taskexecutor_common.templates import TemplateError

_NO_ID = "0" * 32
_ANSWER_SLACK_SEC = 5.0
_LONGEST_ANSWER_SEC = 55.0  # the gateway gives a call 60 s


@dataclass(frozen=True, slots=True)
class Preview:
    """A rendered delivery, secrets masked, and what it was rendered from."""

    endpoint: Endpoint
    config_revision_id: UUID | None
    timeout_ms: int
    rendered: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from one delivery."""

    output: dict[str, Any] | None
    error: dict[str, Any] | None
    duration_ms: int


class DeliveryPreview:
    """Renders without secrets, which only a dispatcher may decrypt, and asks a dispatcher to send."""

    def __init__(
        self, setup: SetupStore, catalog: EndpointCatalog, checks: InputChecks, dispatchers: Peers, clock: Clock
    ) -> None:
        self._setup = setup
        self._catalog = catalog
        self._checks = checks
        self._dispatchers = dispatchers
        self._clock = clock

    async def render(self, namespace: str, name: str, value: dict[str, Any]) -> Preview:
        """What would be sent. Raises EndpointNotFound, InputValidationFailed, TemplateResolutionFailed."""
        self._catalog.forget(namespace, name)  # a preview shows what is, not what was
        entry = await self._catalog.find(namespace, name)
        await self._checks.check(namespace, entry.schema, value)
        endpoint = entry.endpoint
        config = await self._config(namespace, endpoint)
        kind = kind_of(endpoint.endpoint_type)
        compiled = kind.compile(endpoint.spec)
        # Stands in for every secret: valid wherever a secret may stand, and long enough to be found and masked again.
        stand_in = base64.b64encode(os.urandom(24)).decode()
        scope = self._scope(compiled, value, config, stand_in)
        try:
            rendered = kind.describe(compiled.render(scope))
        except (TemplateError, InvalidDestination) as error:
            raise TemplateResolutionFailed(str(error), field="input") from error
        if len(orjson.dumps(rendered)) > MAX_JSON_BYTES:  # to mask and to answer more would hold up other calls
            most = f"{MAX_JSON_BYTES // 1024} KiB"
            raise TemplateResolutionFailed(f"input: makes more than {most}, the most that is previewed", field="input")
        return Preview(
            endpoint, config.revision_id if config else None, compiled.timeout_ms, Mask([stand_in]).value(rendered)
        )

    async def send(self, namespace: str, name: str, value: dict[str, Any]) -> tuple[Preview, Answer]:
        """Sends once, outside any job. Raises what `render` raises, and Unavailable when no dispatcher answers."""
        preview = await self.render(namespace, name, value)
        lines = await self._dispatchers.lines()
        if not lines:
            raise Unavailable("no dispatcher is running", retry_after=5)
        request = dispatcher_pb2.DispatcherServiceSendOnceRequest(
            endpoint_id=preview.endpoint.endpoint_id.bytes,
            revision=preview.endpoint.revision,
            namespace=namespace,
            config_revision_id=preview.config_revision_id.bytes if preview.config_revision_id else None,
            input_json=orjson.dumps(value).decode(),
        )
        stub = dispatcher_pb2_grpc.DispatcherServiceStub(lines[0].channel)
        try:
            answer = await stub.SendOnce(
                request, timeout=min(preview.timeout_ms / 1000 + _ANSWER_SLACK_SEC, _LONGEST_ANSWER_SEC)
            )
        except grpc.aio.AioRpcError as error:
            raise Unavailable("the dispatcher did not answer; whether it sent is not known", retry_after=5) from error
        return preview, Answer(
            orjson.loads(answer.output_json) if answer.HasField("output_json") else None,
            orjson.loads(answer.error_json) if answer.HasField("error_json") else None,
            answer.duration_ms,
        )

    async def _config(self, namespace: str, endpoint: Endpoint) -> Config | None:
        if endpoint.config is None:
            return None
        config = await self._setup.get_config(namespace, endpoint.config)
        if config is None:  # cannot be deleted while it is referred to
            raise InvalidConfigRef(f"config '{endpoint.config}' of the endpoint is gone")
        return config

    def _scope(
        self, compiled: CompiledSpec, value: dict[str, Any], config: Config | None, stand_in: str
    ) -> dict[str, Any]:
        names = {placeholder.path[0] for placeholder in compiled.placeholders if placeholder.namespace == "secret"}
        identity = DeliveryIdentity(
            execution_id=f"exec_{_NO_ID}", job_id=f"job_{_NO_ID}", attempt=1, scheduled_at=rfc3339(self._clock.now())
        )
        return identity.scope(
            value=value,
            config=config.values_json if config else {},
            secrets=dict.fromkeys(names, stand_in),
            job_version=1,
        )
