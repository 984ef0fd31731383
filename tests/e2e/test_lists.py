"""Lists: order, pages that stay in step while rows are added, filters, and cursors that fit one list only."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import MakeKey
from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, in_seconds

pytestmark = pytest.mark.e2e

ROWS = 7
PAGE = 3
HTTP: Json = {"url": "http://127.0.0.1:1/", "method": "POST"}


@pytest.fixture
async def rest(make_key: MakeKey) -> Rest:
    """A namespace that only this test fills."""
    return await make_key()


async def add(rest: Rest, path: str, number: int) -> str:
    """Creates one more of what a path lists; answers what it is known by."""
    name = f"number-{number}"
    match path:
        case "/payload-specs":
            return str((await rest.create(path, {"name": name, "schema": {}}))["name"])
        case "/configs":
            return str((await rest.create(path, {"name": name, "values": {}}))["name"])
        case "/secrets":
            return str((await rest.create(path, {"name": name, "value": "x"}))["name"])
        case "/endpoints":
            return str((await rest.create(path, {"name": name, "type": "HTTP", "spec": HTTP}))["name"])
        case "/api-keys":
            return str((await rest.create(path, {"name": name, "scopes": ["read"]}))["api_key"]["name"])
    job = {"endpoint": "target", "trigger": "DELAYED", "idempotency_key": name, "run_at": in_seconds(3600)}
    return str((await rest.create(path, job))["idempotency_key"])


async def pages(rest: Rest, target: str) -> list[list[Json]]:
    """All pages of a list, by its cursors."""
    separator = "&" if "?" in target else "?"
    found: list[list[Json]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await rest.get(target + (f"{separator}cursor={cursor}" if cursor else ""))
        found.append(page["items"])
        cursor = page.get("cursor")
    return found


def names(items: list[Json]) -> list[str]:
    return [item.get("idempotency_key") or item["name"] for item in items]


ALL = ("/payload-specs", "/configs", "/secrets", "/endpoints", "/jobs", "/api-keys")


@pytest.mark.parametrize("path", ALL)
async def test_a_list_is_newest_first_and_its_pages_hold_each_row_once(rest: Rest, path: str) -> None:
    await rest.create("/endpoints", {"name": "target", "type": "HTTP", "spec": HTTP})
    made = [await add(rest, path, number) for number in range(ROWS)]
    found = await pages(rest, f"{path}?limit={PAGE}")
    assert all(len(page) == PAGE for page in found[:-1])
    listed = [name for name in names([item for page in found for item in page]) if name.startswith("number-")]
    assert listed == made[::-1]


@pytest.mark.parametrize("path", ALL)
async def test_pages_stay_in_step_while_rows_are_added(rest: Rest, path: str) -> None:
    await rest.create("/endpoints", {"name": "target", "type": "HTTP", "spec": HTTP})
    made = [await add(rest, path, number) for number in range(ROWS)]
    page = await rest.get(f"{path}?limit={PAGE}")
    seen = names(page["items"])
    number = ROWS
    while "cursor" in page:
        await add(rest, path, number)
        number += 1
        page = await rest.get(f"{path}?limit={PAGE}&cursor={page['cursor']}")
        seen += names(page["items"])
    assert [name for name in seen if name in made] == made[::-1]
    assert len(seen) == len(set(seen))


async def test_a_page_has_fifty_rows_unless_told_otherwise_and_two_hundred_at_most(rest: Rest) -> None:
    await rest.create("/endpoints", {"name": "target", "type": "HTTP", "spec": HTTP})
    job = {"endpoint": "target", "trigger": "DELAYED", "run_at": in_seconds(3600)}
    await rest.post("/jobs/batch", {"jobs": [{**job, "idempotency_key": str(n)} for n in range(201)]})
    assert len(await rest.items("/jobs")) == 50
    assert [len(page) for page in await pages(rest, "/jobs?limit=200")] == [200, 1]


async def test_rows_of_the_same_instant_are_listed_once_each(rest: Rest) -> None:
    """A batch is one transaction: all its jobs have one `created_at`."""
    await rest.create("/endpoints", {"name": "target", "type": "HTTP", "spec": HTTP})
    job = {"endpoint": "target", "trigger": "DELAYED", "run_at": in_seconds(3600)}
    items = (await rest.post("/jobs/batch", {"jobs": [{**job, "idempotency_key": str(n)} for n in range(20)]}))["items"]
    assert len({item["job"]["created_at"] for item in items}) == 1
    listed = [item["job_id"] for page in await pages(rest, f"/jobs?limit={PAGE}") for item in page]
    assert sorted(listed) == sorted(item["job"]["job_id"] for item in items)


async def test_an_empty_list_is_an_empty_list(rest: Rest) -> None:
    for path in ("/payload-specs", "/configs", "/secrets", "/endpoints", "/jobs"):
        assert await rest.get(path) == {"items": []}


@pytest.fixture
async def jobs(system: System, rest: Rest) -> dict[str, str]:
    """Jobs of three triggers at two endpoints, one of each cancelled; their ids."""
    made = {}
    for endpoint in ("one", "two"):
        await rest.create("/endpoints", {"name": endpoint, "type": "HTTP", "spec": HTTP})
        for state in ("waiting", "cancelled"):
            job = {"trigger": "DELAYED", "idempotency_key": state, "run_at": in_seconds(3600)}
            made[f"{endpoint} {state}"] = (await system.job(endpoint, rest=rest, **job))["job_id"]
        made[f"{endpoint} cron"] = (await system.cron(endpoint, rest=rest))["job_id"]
        await rest.post(f"/jobs/{made[f'{endpoint} cancelled']}/cancel")
    return made


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("endpoint=one", {"one waiting", "one cancelled", "one cron"}),
        ("trigger=CRON", {"one cron", "two cron"}),
        ("status=RETIRED", {"one cancelled", "two cancelled"}),
        ("status=ACTIVE&trigger=DELAYED", {"one waiting", "two waiting"}),
        ("status=ACTIVE&trigger=DELAYED&endpoint=two", {"two waiting"}),
        ("trigger=IMMEDIATE", set()),
        ("endpoint=nope", set()),
    ],
)
async def test_jobs_are_filtered(rest: Rest, jobs: dict[str, str], query: str, found: set[str]) -> None:
    listed = [item["job_id"] for page in await pages(rest, f"/jobs?limit=1&{query}") for item in page]
    assert sorted(listed) == sorted(jobs[name] for name in found)


async def test_endpoints_are_filtered_by_type(rest: Rest) -> None:
    await rest.create("/endpoints", {"name": "target", "type": "HTTP", "spec": HTTP})
    assert names(await rest.items("/endpoints?type=HTTP")) == ["target"]
    assert await rest.items("/endpoints?type=KAFKA") == []


@pytest.mark.parametrize(
    "other", ["/jobs?limit=1", "/jobs?limit=1&trigger=CRON", "/jobs?limit=1&trigger=DELAYED&endpoint=one", "/endpoints"]
)
async def test_a_cursor_fits_its_own_filter_only(rest: Rest, jobs: dict[str, str], other: str) -> None:
    cursor = (await rest.get("/jobs?limit=1&trigger=DELAYED"))["cursor"]
    assert await rest.items(f"/jobs?limit=2&trigger=DELAYED&cursor={cursor}")  # the page size is no filter
    answered = await rest.call("GET", f"{other}{'&' if '?' in other else '?'}cursor={cursor}")
    assert (answered.status, answered.code) == (400, "INVALID_REQUEST")
    assert answered.message.startswith("cursor:")


async def test_a_cursor_of_another_namespace_is_refused(rest: Rest, make_key: MakeKey) -> None:
    for number in range(2):
        await add(rest, "/configs", number)
    cursor = (await rest.get("/configs?limit=1"))["cursor"]
    stranger = await make_key()
    assert (await stranger.call("GET", f"/configs?cursor={cursor}")).status == 400


async def test_any_changed_letter_makes_a_cursor_invalid(rest: Rest) -> None:
    for number in range(2):
        await add(rest, "/configs", number)
    cursor = (await rest.get("/configs?limit=1"))["cursor"]
    for place in range(len(cursor)):
        changed = cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]
        assert (await rest.call("GET", f"/configs?cursor={changed}")).status == 400, changed
    assert (await rest.call("GET", f"/configs?cursor={cursor[:-1]}")).status == 400
