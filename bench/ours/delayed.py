"""Creates jobs with a time over the public API, in batches, as a caller with many of them would."""

from __future__ import annotations

import secrets
import time
import urllib.parse
from collections.abc import Sequence
from uuid import UUID

import grpc.aio

from bench.job_input import job_input
from bench.ours.stack import OurStack
from taskexecutor.v1 import job_pb2 as pb
from taskexecutor.v1 import job_pb2_grpc

BATCH = 500
CALL_SEC = 60.0
FAR_OFF_SEC = 365 * 86_400


async def create_delayed(running: OurStack, endpoint: str, due: Sequence[float]) -> dict[str, float]:
    """Creates a job for each time of `due` (seconds since 1970). Answers when each execution is due, by its id."""
    prefix = secrets.token_hex(4)
    found: dict[str, float] = {}
    for begin in range(0, len(due), BATCH):
        times = due[begin : begin + BATCH]
        jobs = [_job(endpoint, f"{prefix}-{begin + n}", at) for n, at in enumerate(times)]
        answer = await batch(running, jobs)
        found |= {f"exec_{item.job.job_id[4:]}": at for item, at in zip(answer.items, times, strict=True)}
    return found


async def create_models(running: OurStack, endpoints: Sequence[str]) -> list[UUID]:
    """A job of next year for each endpoint, to make copies of (see cloning); answers their ids."""
    prefix, at = secrets.token_hex(4), time.time() + FAR_OFF_SEC
    answer = await batch(running, [_job(name, f"{prefix}-model", at) for name in endpoints])
    return [UUID(item.job.job_id.removeprefix("job_")) for item in answer.items]


async def batch(running: OurStack, jobs: Sequence[pb.CreateJobRequest]) -> pb.BatchCreateJobsResponse:
    """One call. Raises AioRpcError, and AssertionError when a job was refused."""
    target = urllib.parse.urlsplit(running.stack.url).netloc
    options = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]
    async with grpc.aio.insecure_channel(target, options=options) as channel:
        answer: pb.BatchCreateJobsResponse = await job_pb2_grpc.JobServiceStub(channel).BatchCreateJobs(
            pb.BatchCreateJobsRequest(jobs=jobs),
            metadata=(("authorization", f"Bearer {running.stack.api_key}"),),
            timeout=CALL_SEC,
        )
    refused = [item.error.message for item in answer.items if item.HasField("error")]
    assert not refused, refused[0]
    return answer


def _job(endpoint: str, key: str, at: float) -> pb.CreateJobRequest:
    job = pb.CreateJobRequest(endpoint=endpoint, trigger=pb.Job.DELAYED, idempotency_key=key)
    job.input.update(job_input(0))
    job.run_at.FromNanoseconds(round(at * 1_000_000) * 1000)  # the database keeps microseconds
    return job
