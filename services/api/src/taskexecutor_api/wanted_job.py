"""Reads what a job is wanted to be: which fields belong to which trigger, and what each must look like."""

from __future__ import annotations

from taskexecutor.v1 import job_pb2 as pb
from taskexecutor_api.operations.create_job import WantedJob
from taskexecutor_api.operations.cron_jobs import CronChange
from taskexecutor_api.validate import optional_enum, optional_object, optional_time, require_enum, require_text
from taskexecutor_common.errors import InvalidRequest
from taskexecutor_common.model.job import CatchUp, Trigger

_MAX_KEY_CHARS = 255
_MAX_CRON_CHARS = 256
_CRON_FIELDS = ("cron", "timezone", "starts_at", "ends_at")


def read_wanted_job(request: pb.CreateJobRequest) -> WantedJob:
    """The wanted job. Raises InvalidRequest for what is missing, foreign to the trigger, or out of shape."""
    endpoint = require_text(request.endpoint, "endpoint", most=128)
    trigger = Trigger(require_enum(request.trigger, pb.Job.Trigger, "trigger"))
    if trigger is Trigger.CRON:
        return _cron(request, endpoint)
    for field in _CRON_FIELDS:
        if request.HasField(field):
            raise InvalidRequest(f"{field}: belongs to CRON jobs only", field=field)
    if request.catch_up:
        raise InvalidRequest("catch_up: belongs to CRON jobs only", field="catch_up")
    run_at = optional_time(request, "run_at")
    if trigger is Trigger.DELAYED and run_at is None:
        raise InvalidRequest("run_at: is required for DELAYED jobs", field="run_at")
    if trigger is Trigger.IMMEDIATE and run_at is not None:
        raise InvalidRequest("run_at: belongs to DELAYED jobs only", field="run_at")
    return WantedJob(
        endpoint=endpoint,
        trigger=trigger,
        idempotency_key=require_text(request.idempotency_key, "idempotency_key", most=_MAX_KEY_CHARS),
        input=optional_object(request, "input"),
        run_at=run_at,
    )


def _cron(request: pb.CreateJobRequest, endpoint: str) -> WantedJob:
    if request.HasField("run_at"):
        raise InvalidRequest("run_at: belongs to DELAYED jobs only", field="run_at")
    if request.HasField("idempotency_key"):
        raise InvalidRequest(
            "idempotency_key: CRON jobs have none, each of their firings gets a key of its own", field="idempotency_key"
        )
    starts_at, ends_at = optional_time(request, "starts_at"), optional_time(request, "ends_at")
    if starts_at is not None and ends_at is not None and ends_at <= starts_at:
        raise InvalidRequest("ends_at: must lie after starts_at", field="ends_at")
    catch_up = optional_enum(request.catch_up, pb.Job.CatchUp, "catch_up")
    return WantedJob(
        endpoint=endpoint,
        trigger=Trigger.CRON,
        idempotency_key=None,
        input=optional_object(request, "input"),
        cron=require_text(request.cron, "cron", most=_MAX_CRON_CHARS),
        timezone=require_text(request.timezone, "timezone", most=64),
        starts_at=starts_at,
        ends_at=ends_at,
        catch_up=CatchUp(catch_up) if catch_up else CatchUp.ALL,
    )


def read_cron_change(request: pb.UpdateJobRequest) -> CronChange:
    """What an update changes. Raises InvalidRequest for what is out of shape."""
    catch_up = optional_enum(request.catch_up, pb.Job.CatchUp, "catch_up")
    return CronChange(
        cron=require_text(request.cron, "cron", most=_MAX_CRON_CHARS) if request.HasField("cron") else None,
        timezone=require_text(request.timezone, "timezone", most=64) if request.HasField("timezone") else None,
        input=optional_object(request, "input"),
        starts_at=optional_time(request, "starts_at"),
        ends_at=optional_time(request, "ends_at"),
        catch_up=CatchUp(catch_up) if catch_up else None,
    )
