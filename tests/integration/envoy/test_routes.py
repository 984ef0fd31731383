"""The route table says what the descriptor says."""

from __future__ import annotations

import itertools
import re

import pytest
from google.api import annotations_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from taskexecutor_envoy.main import DESCRIPTOR
from taskexecutor_envoy.routes import PathTemplate, public_services, rest_routes
from tests.integration.envoy.rules import FILES, PATHS, RULES, verbs_of


def committed() -> FileDescriptorSet:
    """The descriptor set that Envoy reads."""
    return FileDescriptorSet.FromString(DESCRIPTOR.read_bytes())


def served(descriptors: FileDescriptorSet, path: str) -> tuple[str, ...]:
    """The methods of the first route that matches, which is the one that Envoy takes."""
    return next((route.methods for route in rest_routes(descriptors) if re.fullmatch(route.template.regex, path)), ())


def described(*rules: tuple[str, str], package: str = "taskexecutor.v1") -> FileDescriptorSet:
    """A descriptor set of one service with these (verb, template) rules."""
    descriptors = FileDescriptorSet()
    service = descriptors.file.add(package=package).service.add(name="Demo")
    for verb, template in rules:
        setattr(service.method.add().options.Extensions[annotations_pb2.http], verb, template)
    return descriptors


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.verb} {rule.template}")
def test_every_rule_of_the_descriptor_is_served(rule: object) -> None:
    assert rule.verb in served(committed(), rule.path)


@pytest.mark.parametrize("path", PATHS)
def test_no_path_serves_more_than_its_rules(path: str) -> None:
    assert list(served(committed(), path)) == verbs_of(path)


def test_the_public_services_are_those_of_the_public_package() -> None:
    assert public_services(committed()) == sorted(
        name.full_name for file in FILES for name in file.services_by_name.values()
    )


def test_a_service_of_another_package_is_no_route() -> None:
    hidden = described(("get", "/hidden"), package="taskexecutor.internal.v1")
    assert (rest_routes(hidden), public_services(hidden)) == ([], [])


@pytest.mark.parametrize(
    "order", list(itertools.permutations([("post", "/jobs/batch"), ("get", "/jobs/{id}"), ("put", "/jobs/{id}")]))
)
def test_a_literal_path_also_serves_what_the_variable_one_does(order: list[tuple[str, str]]) -> None:
    assert served(described(*order), "/jobs/batch") == ("GET", "POST", "PUT")
    assert served(described(*order), "/jobs/other") == ("GET", "PUT")


def test_paths_where_templates_cross_serve_both() -> None:
    crossing = described(("get", "/a/{x}/c"), ("post", "/a/b/{y}"))
    assert served(crossing, "/a/b/c") == ("GET", "POST")
    assert served(crossing, "/a/b/x") == ("POST",)
    assert served(crossing, "/a/x/c") == ("GET",)


def test_additional_bindings_are_served() -> None:
    descriptors = described(("get", "/old"))
    rule = descriptors.file[0].service[0].method[0].options.Extensions[annotations_pb2.http]
    rule.additional_bindings.add(post="/new")
    assert served(descriptors, "/new") == ("POST",)


@pytest.mark.parametrize("template", ["jobs", "/jobs/{name=*}", "/jobs/{name=**}", "/jobs/{name}:cancel", "/jobs/*"])
def test_a_template_that_is_not_understood_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="jobs"):
        PathTemplate.parse(template)
