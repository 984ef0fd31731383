"""Creates jobs over gRPC as fast as they are taken, one by one or in batches, from one process.

A program: `python -m bench.load.grpc_calls TARGET KEY ENDPOINT BATCH IN_FLIGHT JOBS`; BATCH 1 calls CreateJob. Requests are
serialised before the clock starts and answers are only counted, so that little else than sending is measured on this side.
It prints one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from collections.abc import Iterator

import grpc.aio

from bench.job_input import job_input
from bench.load.rest import RUN_AT
from taskexecutor.v1 import job_pb2 as pb

SERVICE = "/taskexecutor.v1.JobService/"
CALL_SEC = 60.0
WARM_UP_PART = 10  # one in so many calls comes before the clock starts


def job(endpoint: str, prefix: str, number: int) -> pb.CreateJobRequest:
    """One creation."""
    request = pb.CreateJobRequest(endpoint=endpoint, trigger=pb.Job.DELAYED, idempotency_key=f"{prefix}-{number}")
    request.input.update(job_input(number))
    request.run_at.FromJsonString(RUN_AT)
    return request


def requests(endpoint: str, batch: int, jobs: int) -> list[bytes]:
    """All calls, serialised."""
    prefix = secrets.token_hex(4)
    single = [job(endpoint, prefix, number) for number in range(jobs)]
    if batch == 1:
        return [one.SerializeToString() for one in single]
    chunks = (single[begin : begin + batch] for begin in range(0, jobs, batch))
    return [pb.BatchCreateJobsRequest(jobs=chunk).SerializeToString() for chunk in chunks]


async def send_all(
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes], waiting: Iterator[bytes], key: str, in_flight: int
) -> int:
    """Sends all, `in_flight` at a time; answers the bytes of the answers. Raises AioRpcError."""
    metadata = (("authorization", f"Bearer {key}"),)
    received = 0

    async def send_some() -> None:
        nonlocal received
        for request in waiting:
            received += len(await call(request, metadata=metadata, timeout=CALL_SEC))

    await asyncio.gather(*(send_some() for _ in range(in_flight)))
    return received


async def measure(target: str, key: str, endpoint: str, batch: int, in_flight: int, jobs: int) -> dict[str, float]:
    """Seconds for all jobs but those of the warm-up."""
    calls = requests(endpoint, batch, jobs)
    warm_up = max(1, len(calls) // WARM_UP_PART)
    options = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]
    async with grpc.aio.insecure_channel(target, options=options) as channel:
        method = SERVICE + ("CreateJob" if batch == 1 else "BatchCreateJobs")
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
        await send_all(call, iter(calls[:warm_up]), key, in_flight)
        begin, cpu = time.perf_counter(), time.process_time()
        await send_all(call, iter(calls[warm_up:]), key, in_flight)
        elapsed, used = time.perf_counter() - begin, time.process_time() - cpu
    return {"count": jobs - warm_up * batch, "sec": elapsed, "cpu_sec": used}


def main() -> None:
    """Entry point of the program."""
    target, key, endpoint, *numbers = sys.argv[1:]
    print(json.dumps(asyncio.run(measure(target, key, endpoint, *map(int, numbers)))), flush=True)


if __name__ == "__main__":
    main()
