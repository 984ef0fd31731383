"""A job that was created is answered as it is read later, its input included."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct

from taskexecutor.v1 import job_pb2 as pb
from taskexecutor_api import convert
from taskexecutor_api.validate import to_object
from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.model.job import CatchUp, Job, JobStatus, Trigger
from taskexecutor_common.model.state import ExecutionStatus

NOW = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
INPUTS = [{}, {"n": 1, "half": 0.5, "text": "ü", "yes": True, "none": None, "list": [1, {"deep": []}]}]


def job(**fields: Any) -> Job:
    job_id = uuid.UUID(int=1)
    one_shot = dict.fromkeys(Job._fields) | {
        "job_id": job_id,
        "endpoint_id": uuid.UUID(int=2),
        "endpoint": "orders",
        "endpoint_type": EndpointType.HTTP,
        "endpoint_revision": 3,
        "trigger_type": Trigger.DELAYED,
        "status": JobStatus.ACTIVE,
        "version": 1,
        "root_job_id": job_id,
        "idempotency_key": "key",
        "run_at": NOW + timedelta(hours=1),
        "execution_id": job_id,
        "execution_status": ExecutionStatus.PENDING,
        "execution_created_at": NOW,
        "request_id": "req_1",
        "created_at": NOW,
    }
    return Job(**one_shot | fields)


@pytest.mark.parametrize("value", INPUTS, ids=["empty", "full"])
def test_the_input_that_was_sent_is_the_input_that_is_read(value: dict[str, Any]) -> None:
    sent = Struct()
    sent.update(value)
    answered, read = pb.Job(), convert.job(job(input=to_object(sent, "input")))
    convert.write_job(answered, job(), sent_input=sent)
    assert answered == read
    assert answered.HasField("input")


def test_no_input_is_answered_as_an_empty_one() -> None:
    answered = pb.Job()
    convert.write_job(answered, job(), sent_input=pb.CreateJobRequest().input)
    assert answered == convert.job(job(input=None))
    assert answered.HasField("input")


def test_a_one_shot_job_has_its_fields_and_no_others() -> None:
    shown = json_format.MessageToDict(convert.job(job(), deduplicated=True), preserving_proto_field_name=True)
    assert shown == {
        "job_id": f"job_{1:032x}",
        "endpoint": "orders",
        "endpoint_type": "HTTP",
        "endpoint_revision": 3,
        "trigger": "DELAYED",
        "status": "ACTIVE",
        "version": 1,
        "idempotency_key": "key",
        "input": {},
        "run_at": "2030-01-02T04:04:05.678901Z",
        "execution": {
            "execution_id": f"exec_{1:032x}",
            "status": "PENDING",
            "created_at": "2030-01-02T03:04:05.678901Z",
        },
        "deduplicated": True,
        "created_at": "2030-01-02T03:04:05.678901Z",
        "request_id": "req_1",
    }


def test_a_cron_job_has_its_schedule() -> None:
    fields = {
        "trigger_type": Trigger.CRON,
        "idempotency_key": None,
        "execution_id": None,
        "run_at": None,
        "previous_version_id": uuid.UUID(int=7),
        "replaced_by_id": uuid.UUID(int=8),
        "cron_expression": "@daily",
        "cron_timezone": "UTC",
        "cron_starts_at": NOW,
        "cron_ends_at": NOW + timedelta(days=9),
        "next_run_at": NOW + timedelta(days=1),
        "last_tick_at": NOW,
        "catch_up": CatchUp.LATEST,
        "paused_at": NOW,
        "retired_at": NOW,
    }
    shown = json_format.MessageToDict(convert.job(job(**fields)), preserving_proto_field_name=True)
    assert {"execution", "idempotency_key", "run_at", "deduplicated"} & shown.keys() == set()
    assert shown["previous_version_id"], shown["replaced_by_id"] == (f"job_{7:032x}", f"job_{8:032x}")
    assert (shown["cron"], shown["timezone"], shown["catch_up"]) == ("@daily", "UTC", "LATEST")
    times = {name: shown[name] for name in ("starts_at", "last_tick_at", "paused_at", "retired_at")}
    assert times == dict.fromkeys(times, "2030-01-02T03:04:05.678901Z")
    assert (shown["ends_at"][:10], shown["next_run_at"][:10]) == ("2030-01-11", "2030-01-03")
