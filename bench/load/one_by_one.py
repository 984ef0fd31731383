"""Creates immediate jobs one after the other with pauses, and notes when each creation was begun.

A program: `python -m bench.load.one_by_one rest|grpc URL KEY ENDPOINT COUNT`. Blocking clients: with one request at a time
nothing else has so little of its own in the way. It prints one JSON line: when (seconds since 1970), by job id.
"""

from __future__ import annotations

import http.client
import json
import random
import secrets
import sys
import time
import urllib.parse
from collections.abc import Callable

import grpc

from bench.job_input import job_input
from taskexecutor.v1 import job_pb2 as pb
from taskexecutor.v1 import job_pb2_grpc

PAUSE_SEC = (0.015, 0.030)  # between the two, at random: no rhythm of the system is met or missed by design

Create = Callable[[int], str]


def rest_client(url: str, key: str, endpoint: str) -> Create:
    """Creates over one kept HTTP connection."""
    address = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    prefix = secrets.token_hex(4)

    def create(number: int) -> str:
        wanted = {"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": f"{prefix}-{number}"}
        connection.request("POST", "/jobs", json.dumps(wanted | {"input": job_input(number)}), headers)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 201, body
        return str(json.loads(body)["job_id"])

    return create


def grpc_client(url: str, key: str, endpoint: str) -> Create:
    """Creates over one channel."""
    target = urllib.parse.urlsplit(url).netloc
    stub = job_pb2_grpc.JobServiceStub(grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]))
    prefix = secrets.token_hex(4)

    def create(number: int) -> str:
        request = pb.CreateJobRequest(endpoint=endpoint, trigger=pb.Job.IMMEDIATE, idempotency_key=f"{prefix}-{number}")
        request.input.update(job_input(number))
        return str(stub.CreateJob(request, metadata=(("authorization", f"Bearer {key}"),), timeout=10).job_id)

    return create


def main() -> None:
    """Entry point of the program."""
    protocol, url, key, endpoint, count = sys.argv[1:]
    create = (rest_client if protocol == "rest" else grpc_client)(url, key, endpoint)
    begun: dict[str, float] = {}
    for number in range(int(count)):
        at = time.time()
        begun[create(number)] = at
        time.sleep(random.uniform(*PAUSE_SEC))
    print(json.dumps({"begun": begun}), flush=True)


if __name__ == "__main__":
    main()
