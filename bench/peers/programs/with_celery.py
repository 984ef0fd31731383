"""Celery's side of the benchmark, run by the Python of its own environment: `operate URL` or `work URL SETTINGS`.

After its documentation (docs.celeryq.dev: "Optimizing", "Concurrency", "Using Redis"): acknowledged late, results ignored,
no events, no gossip, no remote control, a prefetch fit for short tasks, one requests session per process.
"""

import asyncio
import base64
import json
import os
import sys
import time
import uuid
from typing import Any

URL, ROLE = sys.argv[2], sys.argv[1]
SETTINGS: dict[str, Any] = json.loads(sys.argv[3]) if ROLE == "work" else {}
if SETTINGS.get("pool") == "gevent":  # before anything opens a socket
    from gevent import monkey

    monkey.patch_all()

import redis
import requests
from celery import Celery
from celery.signals import worker_ready
from conversation import converse, job_input, say
from requests.adapters import HTTPAdapter

QUEUE = "bench"
STAGED = "staged"
CHUNK = 1_000

app = Celery("bench", broker=URL)
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    task_default_queue=QUEUE,
    worker_prefetch_multiplier=SETTINGS.get("prefetch", 4),
    worker_send_task_events=False,
    worker_redirect_stdouts=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": 3600},
)

session = requests.Session()
session.trust_env = False
session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=SETTINGS.get("concurrency", 1)))


@app.task(name="deliver")
def deliver(key: str, body: dict[str, Any]) -> None:
    """One delivery."""
    answer = session.post(SETTINGS["url"], json=body, headers={"Idempotency-Key": key})
    answer.raise_for_status()


def message_like(sample: dict[str, Any], number: int) -> bytes:
    """A message as Celery wrote it, with ids and arguments of its own."""
    message = json.loads(json.dumps(sample))
    task_id = str(uuid.uuid4())
    message["headers"].update(id=task_id, root_id=task_id)
    message["properties"].update(correlation_id=task_id, delivery_tag=str(uuid.uuid4()))
    _, _, rest = json.loads(base64.b64decode(message["body"]))
    body = [[f"job-{number}", job_input(number)], {}, rest]
    message["body"] = base64.b64encode(json.dumps(body).encode()).decode()
    return json.dumps(message).encode()


async def operate() -> None:
    """Makes the jobs."""
    broker = redis.Redis.from_url(URL)

    async def stage(count: int) -> None:
        """Fills another list, with copies of a message that Celery wrote: one by one it would take half a minute."""
        broker.delete(QUEUE, STAGED)
        deliver.apply_async(("job", job_input(0)), queue=STAGED)
        sample = json.loads(broker.rpop(STAGED) or b"")
        sample["properties"]["delivery_info"]["routing_key"] = QUEUE
        for start in range(0, count, CHUNK):
            broker.lpush(STAGED, *(message_like(sample, n) for n in range(start, min(start + CHUNK, count))))

    async def release() -> None:
        """One command; Redis tells whoever waits for the list."""
        broker.rename(STAGED, QUEUE)

    async def unfinished() -> dict[str, Any]:
        """What waits, and what was taken and not acknowledged."""
        return {"count": broker.llen(QUEUE) + broker.hlen("unacked")}

    async def create(key: str) -> dict[str, Any]:
        at = time.time()
        deliver.apply_async((key, job_input(0)))
        return {"at": at}

    async def create_many(count: int, batch: int) -> dict[str, Any]:
        """It has no batches: `batch` is not used."""
        begin = time.perf_counter()
        for number in range(count):
            deliver.apply_async((f"job-{number}", job_input(number)), queue="nobody")
        elapsed = time.perf_counter() - begin
        broker.delete("nobody")
        return {"sec": elapsed}

    async def delay(due: list[float], pending: int, prefix: str = "") -> None:
        """Jobs that fall due at the given times, and `pending` ones of tomorrow; workers keep their timers in memory."""
        for _ in range(pending):
            deliver.apply_async(("pending", {}), countdown=86_400)
        for number, at in enumerate(due):
            deliver.apply_async((f"{prefix}{number}", job_input(0)), countdown=at - time.time())

    await converse(
        {
            "stage": stage,
            "release": release,
            "unfinished": unfinished,
            "create": create,
            "create_many": create_many,
            "delay": delay,
        }
    )


def work() -> None:
    """One worker, in this process; with prefork its children do the tasks."""
    worker_ready.connect(lambda **_: say(ready=True), weak=False)
    # Celery prints a banner where our answers go.
    answers = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(answers, "w")
    arguments = [
        "worker",
        "--loglevel=WARNING",
        f"--pool={SETTINGS['pool']}",
        f"--concurrency={SETTINGS['concurrency']}",
    ]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--queues", QUEUE]
    app.worker_main([*arguments, *quiet, *SETTINGS.get("more", [])])


if __name__ == "__main__":
    if ROLE == "operate":
        asyncio.run(operate())
    else:
        work()
