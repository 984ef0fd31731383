"""The dispatcher's internal rpc: hints that queues have work and that secrets were rotated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

import grpc

from taskexecutor.internal.v1 import dispatcher_pb2, dispatcher_pb2_grpc
from taskexecutor_common.errors import InvalidRequest

Context = grpc.aio.ServicerContext[Any, Any]


class DispatcherServicer(dispatcher_pb2_grpc.DispatcherServiceServicer):
    """Passes hints on."""

    def __init__(self, wake: Callable[[Iterable[UUID]], None], forget_secret: Callable[[str, str], None]) -> None:
        self._wake = wake
        self._forget_secret = forget_secret

    async def Wake(
        self, request: dispatcher_pb2.DispatcherServiceWakeRequest, context: Context
    ) -> dispatcher_pb2.DispatcherServiceWakeResponse:
        """These queues have work."""
        if any(len(queue) != 16 for queue in request.queues):
            raise InvalidRequest("queues: an id has 16 bytes", field="queues")
        self._wake([UUID(bytes=queue) for queue in request.queues])
        return dispatcher_pb2.DispatcherServiceWakeResponse()

    async def ForgetSecret(
        self, request: dispatcher_pb2.DispatcherServiceForgetSecretRequest, context: Context
    ) -> dispatcher_pb2.DispatcherServiceForgetSecretResponse:
        """A secret was rotated."""
        self._forget_secret(request.namespace, request.name)
        return dispatcher_pb2.DispatcherServiceForgetSecretResponse()
