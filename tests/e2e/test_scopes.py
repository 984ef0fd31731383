"""What a key may do, for how long, and that keys can be made and taken away while the system runs."""

from __future__ import annotations

import pytest

from taskexecutor.v1 import api_key_pb2
from tests.e2e.calls import METHODS, over_rest
from tests.e2e.conftest import MakeKey, make_key_in
from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh, in_seconds
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

REVOKED_WITHIN_SEC = 8.0
READS = ("Get", "List", "Preview", "Render")
KEYS = api_key_pb2.DESCRIPTOR.services_by_name["ApiKeyService"]
ANY: Json = {"name": "x", "job_id": "x", "execution_id": "x", "key_id": "x"}


def needed(name: str) -> str:
    """The scope that a method asks for."""
    if METHODS[name].containing_service is KEYS:
        return "admin"
    return "read" if name.split(".")[1].startswith(READS) else "write"


@pytest.fixture(scope="module")
async def by_scope(system: System) -> dict[str, Rest]:
    """A key for each scope alone, all of one namespace."""
    namespace = fresh("namespace")
    return {scope: await make_key_in(system, namespace, scope) for scope in ("read", "write", "admin")}


@pytest.mark.parametrize("name", METHODS)
async def test_a_method_asks_for_its_scope(by_scope: dict[str, Rest], name: str) -> None:
    request = {field: value for field, value in ANY.items() if field in METHODS[name].input_type.fields_by_name}
    for scope, rest in by_scope.items():
        answered = await over_rest(rest, name, request)
        if scope in (needed(name), "admin"):
            assert answered.status != 403, scope
        else:
            assert (answered.status, answered.code) == (403, "FORBIDDEN"), scope
            assert f"'{needed(name)}'" in answered.message


async def test_a_key_made_by_the_api_works_as_its_scopes_say(make_key: MakeKey) -> None:
    admin = await make_key()
    made = await admin.create("/api-keys", {"name": "ci", "scopes": ["read"]})
    assert sorted(made["api_key"]) == ["created_at", "key_id", "name", "scopes"]
    reader = admin.as_key(made["key"])
    await admin.create("/configs", {"name": "shared", "values": {}})
    assert [item["name"] for item in await reader.items("/configs")] == ["shared"]
    assert (await reader.call("DELETE", "/configs/shared")).code == "FORBIDDEN"


async def test_a_key_is_shown_once(make_key: MakeKey) -> None:
    admin = await make_key()
    made = await admin.create("/api-keys", {"name": "ci", "scopes": ["read"]})
    listed = await admin.call("GET", "/api-keys")
    assert made["api_key"]["key_id"] in listed.text
    assert made["key"].rpartition("_")[2] not in listed.text


async def test_a_revoked_key_is_refused_within_seconds(make_key: MakeKey) -> None:
    admin = await make_key()
    made = await admin.create("/api-keys", {"name": "ci", "scopes": ["read"]})
    victim = admin.as_key(made["key"])
    await victim.get("/configs")
    await admin.delete(f"/api-keys/{made['api_key']['key_id']}")

    async def refused() -> bool:
        return (await victim.call("GET", "/configs")).status == 401

    await wait_until(refused, REVOKED_WITHIN_SEC, "401")


async def test_an_expired_key_is_refused(make_key: MakeKey) -> None:
    admin = await make_key()
    made = await admin.create("/api-keys", {"name": "ci", "scopes": ["read"], "expires_at": in_seconds(1)})
    guest = admin.as_key(made["key"])
    await guest.get("/configs")

    async def refused() -> bool:
        return (await guest.call("GET", "/configs")).status == 401

    await wait_until(refused, REVOKED_WITHIN_SEC, "401")
