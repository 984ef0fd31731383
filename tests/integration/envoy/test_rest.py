"""REST calls become gRPC calls and their answers become JSON in the contract's shape."""

from __future__ import annotations

import json
from collections.abc import Iterator

import aiohttp
import pytest
from google.protobuf import empty_pb2, json_format, struct_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from yarl import URL

from taskexecutor.v1 import config_pb2, endpoint_pb2, execution_pb2, job_pb2
from tests.integration.envoy.rules import FILES, RULES, Rule
from tests.integration.envoy.scripted_api import ScriptedApi, answers

JOB_ID = "job_" + "0" * 32


async def echo_job(request: job_pb2.CreateJobRequest, _: object) -> job_pb2.Job:
    """Answers a job with the request's input."""
    return job_pb2.Job(job_id=JOB_ID, input=request.input)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.method)
async def test_every_rule_of_the_descriptor_reaches_its_method(
    api: ScriptedApi, rest: aiohttp.ClientSession, rule: Rule
) -> None:
    body = None if rule.verb in {"GET", "DELETE"} else {}
    async with rest.request(rule.verb, rule.path, json=body) as answer:
        assert answer.status == 501
    assert [call.method for call in api.calls] == [rule.method]


async def test_a_created_resource_answers_201(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("CreateJob", answers(job_pb2.Job(job_id=JOB_ID), ("x-http-code", "201")))
    async with rest.post("/jobs", json={}) as answer:
        assert answer.status == 201
        assert (await answer.json())["job_id"] == JOB_ID


async def test_a_deduplicated_creation_answers_200(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("CreateJob", answers(job_pb2.Job(job_id=JOB_ID, deduplicated=True)))
    async with rest.post("/jobs", json={}) as answer:
        assert answer.status == 200
        assert (await answer.json())["deduplicated"] is True


async def test_a_deletion_answers_204_without_body(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("DeleteSecret", answers(empty_pb2.Empty(), ("x-http-code", "204")))
    async with rest.delete("/secrets/token") as answer:
        assert answer.status == 204
        assert await answer.read() == b""
        assert not {"content-length", "content-type", "transfer-encoding"} & {name.lower() for name in answer.headers}


async def test_a_connection_can_be_used_again_after_204(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("DeleteSecret", answers(empty_pb2.Empty(), ("x-http-code", "204")))
    api.on("GetJob", answers(job_pb2.Job(job_id=JOB_ID)))
    await (await rest.delete("/secrets/token")).read()
    async with rest.get(f"/jobs/{JOB_ID}") as answer:
        assert (await answer.json())["job_id"] == JOB_ID


async def test_names_are_snake_case_and_zeros_empty_lists_and_false_are_printed(
    api: ScriptedApi, rest: aiohttp.ClientSession
) -> None:
    api.on("ListAttempts", answers(execution_pb2.ListAttemptsResponse(items=[execution_pb2.Attempt()])))
    api.on("GetJob", answers(job_pb2.Job(deduplicated=False)))
    api.on("ListJobs", answers(job_pb2.ListJobsResponse()))
    async with rest.get("/executions/x/attempts") as answer:
        assert (await answer.json())["items"][0] == {
            "execution_id": "",
            "attempt_number": 0,
            "status": "STATUS_UNSPECIFIED",
        }
    async with rest.get("/jobs/x") as answer:
        assert (await answer.json())["deduplicated"] is False
    async with rest.get("/jobs") as answer:
        assert await answer.json() == {"items": []}


async def test_absent_things_are_left_out(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("GetJob", answers(job_pb2.Job(job_id=JOB_ID)))
    async with rest.get(f"/jobs/{JOB_ID}") as answer:
        assert not {"run_at", "cron", "input", "execution", "deduplicated"} & set(await answer.json())


async def test_numbers_are_json_numbers_and_enums_are_their_names(
    api: ScriptedApi, rest: aiohttp.ClientSession
) -> None:
    endpoint = endpoint_pb2.Endpoint(
        type=endpoint_pb2.Endpoint.HTTP,
        revision=7,
        retry_policy=endpoint_pb2.RetryPolicy(max_attempts=3, backoff=endpoint_pb2.RetryPolicy.exponential),
    )
    api.on("GetEndpoint", answers(endpoint))
    async with rest.get("/endpoints/x") as answer:
        shown = await answer.json()
    assert (shown["type"], shown["revision"]) == ("HTTP", 7)
    assert (shown["retry_policy"]["max_attempts"], shown["retry_policy"]["backoff"]) == (3, "exponential")


def test_the_contract_has_no_64_bit_integers_which_json_would_print_as_text() -> None:
    wide = {FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64}
    messages = [message for file in FILES for message in file.message_types_by_name.values()]
    fields = [field for message in messages for part in with_nested(message) for field in part.fields]
    assert len(fields) > 100
    assert [field.full_name for field in fields if field.cpp_type in wide] == []


def with_nested(message: Descriptor) -> Iterator[Descriptor]:
    """The message type and all that are declared inside it."""
    yield message
    for nested in message.nested_types:
        yield from with_nested(nested)


@pytest.mark.parametrize(
    "text", ["9007199254740991", "-9007199254740991", "0", "12.5", "0.1", "1e-07", "1.7976931348623157e+308"]
)
async def test_numbers_that_a_double_holds_come_back_as_they_went(
    api: ScriptedApi, rest: aiohttp.ClientSession, text: str
) -> None:
    api.on("CreateJob", echo_job)
    async with rest.post("/jobs", data=f'{{"input":{{"n":{text}}}}}') as answer:
        shown = json.loads(await answer.text(), parse_float=str, parse_int=str)["input"]["n"]
    assert float(shown) == float(text)
    assert (shown.lstrip("-").isdigit()) == text.lstrip("-").isdigit()


async def test_an_integer_beyond_a_double_reaches_the_api_as_one_that_it_can_refuse(
    api: ScriptedApi, rest: aiohttp.ClientSession
) -> None:
    api.on("CreateJob", echo_job)
    async with rest.post("/jobs", data='{"input":{"n":9007199254740993}}') as answer:
        assert answer.status == 200
    assert api.calls[0].request.input["n"] >= 2**53


@pytest.mark.parametrize(
    ("written", "meant"), [("a%2Fb", "a/b"), ("a%20b", "a b"), ("%C3%A9", "é"), ("a:b", "a:b"), ("a%25b", "a%b")]
)
async def test_a_path_parameter_is_unescaped_once_and_stays_one_segment(
    api: ScriptedApi, rest: aiohttp.ClientSession, written: str, meant: str
) -> None:
    api.on("GetConfig", answers(config_pb2.Config()))
    async with rest.get(URL(f"/configs/{written}", encoded=True)) as answer:
        assert answer.status == 200
    assert api.calls[0].request.name == meant


async def test_query_parameters_fill_the_request(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("ListJobs", answers(job_pb2.ListJobsResponse()))
    async with rest.get("/jobs?limit=7&endpoint=a+b&trigger=CRON") as answer:
        assert answer.status == 200
    assert api.calls[0].request == job_pb2.ListJobsRequest(limit=7, endpoint="a b", trigger=job_pb2.Job.CRON)


async def test_jobs_batch_posts_to_the_batch_and_gets_the_job_of_that_name(
    api: ScriptedApi, rest: aiohttp.ClientSession
) -> None:
    await rest.post("/jobs/batch", json={"jobs": []})
    await rest.get("/jobs/batch")
    assert [call.method for call in api.calls] == ["BatchCreateJobs", "GetJob"]
    assert api.calls[1].request.job_id == "batch"


async def test_unknown_fields_of_a_body_are_dropped(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("CreateJob", echo_job)
    async with rest.post("/jobs", json={"endpoint": "e", "no_such_field": 1}) as answer:
        assert answer.status == 200
    assert json_format.MessageToDict(api.calls[0].request) == {"endpoint": "e"}


async def test_an_answer_larger_than_envoys_buffers_arrives_whole(
    api: ScriptedApi, rest: aiohttp.ClientSession
) -> None:
    page = job_pb2.ListJobsResponse(items=[job_pb2.Job(input=struct())] * 40)
    api.on("ListJobs", answers(page))
    async with rest.get("/jobs") as answer:
        assert answer.status == 200
        body = await answer.read()
    assert len(body) > 8 << 20
    assert len(json.loads(body)["items"]) == 40


def struct() -> struct_pb2.Struct:
    """An input of about 256 KiB."""
    return json_format.ParseDict({"text": "x" * (256 << 10)}, struct_pb2.Struct())


async def test_the_callers_headers_reach_the_api_as_metadata(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    traceparent = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
    await rest.get("/jobs", headers={"authorization": "Bearer te_1_2", "traceparent": traceparent})
    metadata = api.calls[0].metadata
    assert (metadata["authorization"], metadata["traceparent"]) == ("Bearer te_1_2", traceparent)


@pytest.mark.parametrize("foreign", ["x-it's", "x-a!b", "trace-bin", "grpc-timeout", "grpc-encoding"])
async def test_a_header_that_grpc_does_not_take_is_left_out(
    api: ScriptedApi, rest: aiohttp.ClientSession, foreign: str
) -> None:
    await rest.get("/jobs", headers={foreign: "zzz", "x-kept": "yes"})
    assert foreign not in api.calls[0].metadata
    assert api.calls[0].metadata["x-kept"] == "yes"


@pytest.mark.parametrize("path", ["/jobs", "/secrets/missing"])
async def test_a_rest_answer_shows_no_header_of_grpc_or_of_the_gateways_inside(
    api: ScriptedApi, rest: aiohttp.ClientSession, path: str
) -> None:
    api.on("ListJobs", answers(job_pb2.ListJobsResponse(), ("x-http-code", "200")))
    async with rest.get(path) as answer:
        names = {name.lower() for name in answer.headers}
    assert names <= {"content-type", "content-length", "date", "x-request-id"}
