"""The dispatcher's internal rpc: hints that queues have work and that secrets were rotated."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any
from uuid import UUID

import grpc
import orjson

from taskexecutor.internal.v1 import dispatcher_pb2, dispatcher_pb2_grpc
from taskexecutor_dispatcher.executor import Executor

_ID_BYTES = 16

Context = grpc.aio.ServicerContext[Any, Any]


class DispatcherServicer(dispatcher_pb2_grpc.DispatcherServiceServicer):
    """Passes hints on."""

    def __init__(
        self,
        wake: Callable[[Iterable[UUID]], None],
        forget_secret: Callable[[str, str], None],
        executor: Executor,
    ) -> None:
        self._executor = executor
        self._wake = wake
        self._forget_secret = forget_secret

    async def Wake(
        self, requests: AsyncIterator[dispatcher_pb2.DispatcherServiceWakeRequest], context: Context
    ) -> dispatcher_pb2.DispatcherServiceWakeResponse:
        """These queues have work, each time."""
        async for request in requests:
            self._wake([UUID(bytes=queue) for queue in request.queues if len(queue) == _ID_BYTES])
        return dispatcher_pb2.DispatcherServiceWakeResponse()

    async def ForgetSecret(
        self, request: dispatcher_pb2.DispatcherServiceForgetSecretRequest, context: Context
    ) -> dispatcher_pb2.DispatcherServiceForgetSecretResponse:
        """A secret was rotated."""
        self._forget_secret(request.namespace, request.name)
        return dispatcher_pb2.DispatcherServiceForgetSecretResponse()

    async def SendOnce(
        self, request: dispatcher_pb2.DispatcherServiceSendOnceRequest, context: Context
    ) -> dispatcher_pb2.DispatcherServiceSendOnceResponse:
        """Sends outside any job."""
        has_config = request.HasField("config_revision_id")
        started = time.perf_counter()
        outcome = await self._executor.send_once(
            endpoint_id=UUID(bytes=request.endpoint_id),
            revision=request.revision,
            namespace=request.namespace,
            config_revision_id=UUID(bytes=request.config_revision_id) if has_config else None,
            value=orjson.loads(request.input_json),
        )
        return dispatcher_pb2.DispatcherServiceSendOnceResponse(
            output_json=None if outcome.output is None else orjson.dumps(outcome.output).decode(),
            error_json=None if outcome.error is None else orjson.dumps(outcome.error.to_json()).decode(),
            duration_ms=round((time.perf_counter() - started) * 1000),
        )
