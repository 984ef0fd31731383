"""The interceptor around every unary call: request id, logs, metrics, and errors turned into statuses."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, cast

import grpc
from google.protobuf.message import DecodeError, Message

from taskexecutor_common.errors import InternalError, InvalidRequest, TaskExecutorError
from taskexecutor_common.observability import metrics
from taskexecutor_common.observability.logging import bound_contextvars, get_logger
from taskexecutor_common.rpc.status import abort_arguments

REQUEST_ID: ContextVar[str] = ContextVar("request_id")
"""The id of the call that is being answered."""

_SAFE_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
_STOPPING = "this server is stopping"
# Envoy takes this as a failed health check: new calls no longer go to the connections it has to this server. Without it
# they come until gRPC closes, and gRPC loses those that arrive in that moment.
# https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/router_filter
_GO_ELSEWHERE = (("x-envoy-immediate-health-check-fail", "true"),)
_log = get_logger("rpc")

Context = grpc.aio.ServicerContext[Any, Any]
Handler = Callable[[Any, Context], Awaitable[Any]]


class Undecodable:
    """Stands in for a request whose bytes are no message; the deserialiser itself cannot answer."""


def request_id_of(metadata: Any) -> str:
    """The caller's x-request-id if it is safe to log and echo, else a new one."""
    for key, value in metadata or ():
        if key == "x-request-id" and isinstance(value, str) and _SAFE_ID.fullmatch(value):
            return value
    return f"req_{uuid.uuid4().hex}"


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Wraps handlers with one answer; streams of answers (reflection, health watches) pass as they are.

    After `turn_away`, new calls are answered CANCELLED at once: the gateway sends such a call again, to another replica
    or to this one's successor (docs/gateway.md). Nothing of it was begun. Calls that are kept open for hints end.
    """

    def __init__(self) -> None:
        self._leaving = asyncio.Event()
        self._under_way = 0
        self._quiet = asyncio.Event()
        self._known: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    def turn_away(self) -> None:
        """The server is stopping."""
        self._leaving.set()
        self._see_whether_quiet()

    async def quiet(self) -> None:
        """Returns once calls are turned away and no call with one answer is under way, its answer sent."""
        await self._quiet.wait()

    def _begins(self, context: Context) -> None:
        self._under_way += 1
        context.add_done_callback(cast(Any, self._ended))  # the stubs want a class that exists only there

    def _ended(self, _: Context) -> None:
        self._under_way -= 1
        self._see_whether_quiet()

    def _see_whether_quiet(self) -> None:
        if self._leaving.is_set() and not self._under_way:
            self._quiet.set()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Called by grpc for each call. A method's handler, and what the interceptors after this one made of it, is
        always the same, so it is put together once."""
        method = str(handler_call_details.method)
        if known := self._known.get(method):
            return known
        handler = await continuation(handler_call_details)
        if handler is None or handler.response_streaming:
            return handler
        if handler.request_streaming:
            return grpc.stream_unary_rpc_method_handler(
                self._listening(cast(Handler, handler.stream_unary)),
                request_deserializer=handler.request_deserializer,
                response_serializer=handler.response_serializer,
            )
        self._known[method] = grpc.unary_unary_rpc_method_handler(
            self._answering(method, cast(Handler, handler.unary_unary)),
            request_deserializer=_catching(handler.request_deserializer),
            response_serializer=handler.response_serializer,
        )
        return self._known[method]

    def _listening(self, inner: Handler) -> Handler:
        async def listen(requests: Any, context: Context) -> Any:
            leaving = asyncio.create_task(self._leaving.wait())
            listening = asyncio.ensure_future(inner(requests, context))
            try:
                await asyncio.wait([leaving, listening], return_when=asyncio.FIRST_COMPLETED)
                if not listening.done():
                    await context.abort(grpc.StatusCode.CANCELLED, _STOPPING)
                return await listening
            finally:
                leaving.cancel()
                listening.cancel()

        return listen

    def _answering(self, method: str, inner: Handler) -> Handler:
        succeeded, seconds = metrics.RPCS.labels(method=method, status="OK"), metrics.RPC_SECONDS.labels(method=method)

        async def answer(request: Any, context: Context) -> Any:
            if self._leaving.is_set():
                await context.abort(grpc.StatusCode.CANCELLED, _STOPPING, _GO_ELSEWHERE)
            self._begins(context)
            started = time.perf_counter()
            request_id = request_id_of(context.invocation_metadata())
            REQUEST_ID.set(request_id)
            status = "OK"
            try:
                if isinstance(request, Undecodable):
                    raise InvalidRequest("the request cannot be read: it is damaged or nested too deeply")
                _refuse_nul(request)
                return await inner(request, context)
            except TaskExecutorError as error:
                status = error.status_code.name
                await context.abort(*abort_arguments(error, request_id))
            except grpc.aio.AbortError:
                status = "ABORTED"
                raise
            except Exception:
                status = "INTERNAL"
                with bound_contextvars(request_id=request_id):
                    _log.exception("call failed", method=method)
                await context.abort(*abort_arguments(InternalError(), request_id))
            finally:
                elapsed = time.perf_counter() - started
                (succeeded if status == "OK" else metrics.RPCS.labels(method=method, status=status)).inc()
                seconds.observe(elapsed)
                _log.debug("call", method=method, status=status, request_id=request_id, ms=round(elapsed * 1000, 1))

        return answer


def _refuse_nul(request: Message) -> None:
    """No name, id or filter holds NUL, and the database takes no such text. Free JSON is checked where it is read."""
    for field, value in request.ListFields():
        if isinstance(value, str) and "\x00" in value:
            raise InvalidRequest(f"{field.name}: must not contain NUL", field=field.name)


def _catching(deserializer: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    if deserializer is None:
        return None

    def deserialize(raw: bytes) -> Any:
        try:
            return deserializer(raw)
        except DecodeError:
            return Undecodable()

    return deserialize
