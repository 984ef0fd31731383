"""The pages on settings and errors say what the code does."""

from __future__ import annotations

import re

import pytest
from pydantic.fields import FieldInfo

from taskexecutor.v1 import error_pb2
from taskexecutor_common import errors
from taskexecutor_common.config.settings import (
    ApiSettings,
    DatabaseSettings,
    DispatcherSettings,
    SchedulerSettings,
    ServiceSettings,
)
from taskexecutor_common.store.admin import AdminSettings
from tests.contract.deploy.files import ROOT, commands, text, variables

SECTIONS: dict[str, type[DatabaseSettings]] = {
    "Database": DatabaseSettings,
    "All services": ServiceSettings,
    "api": ApiSettings,
    "scheduler": SchedulerSettings,
    "dispatcher": DispatcherSettings,
    "taskexecutor-admin": AdminSettings,
}
PAGES = ["docs/configuration.md", "docs/errors.md", "docs/operations.md", "CONTRIBUTING.md", "CHANGELOG.md"]


def documented(section: str) -> dict[str, str]:
    """Variable -> default of one section's table; every row has a unit and a consequence, too."""
    body = re.split(r"^## ", text("docs/configuration.md").split(f"\n## {section}\n")[1], flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| `(TE_\w+)` \| (.+?) \| .+? \| .+ \|$", body, re.MULTILINE)
    assert len(rows) == len(dict(rows)) == len(re.findall(r"^\| `", body, re.MULTILINE))
    return dict(rows)


def own_fields(settings: type[DatabaseSettings]) -> dict[str, FieldInfo]:
    inherited = {name for base in settings.__mro__[1:] for name in getattr(base, "model_fields", {})}
    return {name: field for name, field in settings.model_fields.items() if name not in inherited}


def shown_default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None:
        return "none"
    value = getattr(field.default, "get_secret_value", lambda: field.default)()
    return "empty" if value == "" else f"`{value}`"


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_is_documented_with_its_default(section: str) -> None:
    settings = SECTIONS[section]
    expected = {variables(settings, name)[0]: shown_default(field) for name, field in own_fields(settings).items()}
    assert documented(section) == expected


def test_other_names_of_settings_are_mentioned() -> None:
    page = text("docs/configuration.md")
    others = {name for s in SECTIONS.values() for field in s.model_fields for name in variables(s, field)[1:]}
    assert others
    assert {name for name in others if f"`{name}`" not in page} == set()


def codes() -> list[str]:
    return [name for name in error_pb2.ErrorCode.Value.keys() if not name.endswith("UNSPECIFIED")]  # noqa: SIM118 not a dict


def descendants(kind: type[errors.TaskExecutorError]) -> list[type[errors.TaskExecutorError]]:
    return [kind] + [below for child in kind.__subclasses__() for below in descendants(child)]


def error_sections() -> dict[str, tuple[int, set[str]]]:
    """Code -> REST status and gRPC statuses, as docs/errors.md has them."""
    found = re.findall(r"^## ([A-Z_]+)\n\n\*\*(\d{3})\*\* · (.+)\n\n\S", text("docs/errors.md"), re.MULTILINE)
    assert len(found) == len({code for code, _, _ in found})
    return {code: (int(status), set(re.findall(r"`([A-Z_]+)`", rest))) for code, status, rest in found}


def test_every_code_of_the_contract_is_explained_and_no_other() -> None:
    assert sorted(error_sections()) == sorted(codes())


@pytest.mark.parametrize("code", codes())
def test_a_code_has_the_status_that_the_contract_gives_it(code: str) -> None:
    (status,) = re.findall(rf"// (\d{{3}})[^\n]*\n *{code} = ", text("proto/taskexecutor/v1/error.proto"))
    assert error_sections()[code][0] == int(status)


def test_a_code_has_the_statuses_that_the_code_answers_with() -> None:
    sections = error_sections()
    raised: dict[str, set[str]] = {}
    for kind in descendants(errors.TaskExecutorError):
        is_abstract = kind.reason == errors.InternalError.reason and kind is not errors.InternalError
        if not is_abstract:
            raised.setdefault(kind.reason, set()).add(kind.status_code.name)
            assert sections[kind.reason][0] == kind.http_status
    assert {code: grpc for code, (_, grpc) in sections.items() if code in raised} == raised


def test_what_only_the_gateway_answers_is_no_error_of_the_api() -> None:
    reasons = {kind.reason for kind in descendants(errors.TaskExecutorError)}
    from_gateway = re.findall(r"^## ([A-Z_]+)\n\n.* REST only, from the gateway$", text("docs/errors.md"), re.MULTILINE)
    assert set(from_gateway) == set(codes()) - reasons


def test_every_type_of_attempt_error_is_explained_and_no_other() -> None:
    comment = text("proto/taskexecutor/v1/execution.proto").split("message AttemptError {")[1].split("string type")[0]
    explained = re.findall(
        r"^\| `([A-Z_]+)` \|", text("docs/errors.md").split("## Errors of attempts")[1], re.MULTILINE
    )
    assert sorted(explained) == sorted(set(re.findall(r"\b[A-Z]+_[A-Z_]+\b|\bTIMEOUT\b", comment)))


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", text(page))]
    files = [target for target in targets if target and "://" not in target]
    assert [target for target in files if not (ROOT / page).parent.joinpath(target).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_make_targets_that_a_page_names_exist(page: str) -> None:
    said = text(page)
    assert set(re.findall(r"\btaskexecutor-[a-z]+(?:-[a-z]+)?\b(?!-)", said)) <= commands()
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", said)) <= targets


def test_the_licence_is_the_one_that_the_packages_name() -> None:
    assert "Apache License" in text("LICENSE")
    assert "END OF TERMS AND CONDITIONS" in text("LICENSE")
    for path in ROOT.glob("*/*/pyproject.toml"):
        assert 'license = "Apache-2.0"' in path.read_text()


def test_the_changelog_speaks_of_the_version_that_the_packages_have() -> None:
    (version,) = re.findall(r'^version = "([^"]+)"$', text("pyproject.toml"), re.MULTILINE)
    assert re.search(rf"^## \[{re.escape(version)}\]", text("CHANGELOG.md"), re.MULTILINE)
