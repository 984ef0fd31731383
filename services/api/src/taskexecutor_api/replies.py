"""What REST callers see besides the message: the status of a creation or deletion (docs/gateway.md)."""

from __future__ import annotations

from google.protobuf.empty_pb2 import Empty

from taskexecutor_common.rpc.calls import Context


async def created(context: Context) -> None:
    """Answers 201. Call it when nothing can fail any more: an error after it would lose its details."""
    await context.send_initial_metadata((("x-http-code", "201"),))


async def deleted(context: Context) -> Empty:
    """Answers 204."""
    await context.send_initial_metadata((("x-http-code", "204"),))
    return Empty()
