"""What the gateway serves, read from the descriptor: the REST routes and the public gRPC services."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from google.api import annotations_pb2
from google.api.http_pb2 import HttpRule
from google.protobuf.descriptor_pb2 import FileDescriptorSet, MethodDescriptorProto, ServiceDescriptorProto

PUBLIC_PACKAGE = "taskexecutor.v1"

_LITERAL = re.compile(r"[A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"\{[a-z0-9_]+\}")


@dataclass(frozen=True)
class PathTemplate:
    """The shape of a path: literal segments, and None where any one segment will do.

    `/jobs/{job_id}/cancel` is `("jobs", None, "cancel")`: the names of variables do not matter for routing.
    """

    segments: tuple[str | None, ...]

    @classmethod
    def parse(cls, path: str) -> PathTemplate:
        """Reads the path of a `google.api.http` rule; ValueError for the parts of its syntax that we do not use."""
        if not path.startswith("/"):
            raise ValueError(f"not an absolute path: {path!r}")
        return cls(tuple(_segment(text, path) for text in path[1:].split("/")))

    @property
    def variables(self) -> int:
        """How many segments are variable; the fewer, the more specific the template."""
        return self.segments.count(None)

    @property
    def literal(self) -> str | None:
        """The path itself when nothing in it varies, else None."""
        return None if self.variables else "/" + "/".join(segment or "" for segment in self.segments)

    @property
    def regex(self) -> str:
        """An RE2 expression for the whole path."""
        return "/" + "/".join(segment or "[^/]+" for segment in self.segments)

    def covers(self, other: PathTemplate) -> bool:
        """Whether every path of `other` is also one of this template."""
        return self.meet(other) == other

    def meet(self, other: PathTemplate) -> PathTemplate | None:
        """The template of the paths that both match; None when there are none."""
        if len(self.segments) != len(other.segments):
            return None
        pairs = list(zip(self.segments, other.segments, strict=True))
        if any(mine and theirs and mine != theirs for mine, theirs in pairs):
            return None
        return PathTemplate(tuple(mine or theirs for mine, theirs in pairs))


def _segment(text: str, path: str) -> str | None:
    if _VARIABLE.fullmatch(text):
        return None
    if _LITERAL.fullmatch(text):
        return text
    raise ValueError(f"only literals and {{name}} are understood in paths, not {text!r} of {path!r}")


@dataclass(frozen=True)
class RestRoute:
    """A template and every method that some rule serves on its paths."""

    template: PathTemplate
    methods: tuple[str, ...]


def rest_routes(descriptors: FileDescriptorSet) -> list[RestRoute]:
    """The REST routes, the more specific first, so that the first match has the right set of methods.

    `POST /jobs/batch` and `GET /jobs/{job_id}` meet in the path `/jobs/batch`, which therefore serves both methods,
    while `/jobs/{job_id}` serves GET alone.
    """
    bindings = {binding for method in _public_methods(descriptors) for binding in _bindings(method)}
    templates = _closed_under_meet({template for _, template in bindings})
    routes = [
        RestRoute(shape, tuple(sorted({verb for verb, template in bindings if template.covers(shape)})))
        for shape in templates
    ]
    return sorted(routes, key=lambda route: (route.template.variables, route.template.regex))


def public_services(descriptors: FileDescriptorSet) -> list[str]:
    """Full names of the services that callers may reach; those of other packages stay inside."""
    return sorted(f"{PUBLIC_PACKAGE}.{service.name}" for service in _public_services(descriptors))


def _public_services(descriptors: FileDescriptorSet) -> Iterator[ServiceDescriptorProto]:
    for file in descriptors.file:
        if file.package == PUBLIC_PACKAGE:
            yield from file.service


def _public_methods(descriptors: FileDescriptorSet) -> Iterator[MethodDescriptorProto]:
    for service in _public_services(descriptors):
        yield from service.method


def _bindings(method: MethodDescriptorProto) -> Iterator[tuple[str, PathTemplate]]:
    if not method.options.HasExtension(annotations_pb2.http):
        return
    rule = method.options.Extensions[annotations_pb2.http]
    for binding in (rule, *rule.additional_bindings):
        yield _binding(binding)


def _binding(rule: HttpRule) -> tuple[str, PathTemplate]:
    verb = rule.WhichOneof("pattern")
    if verb is None or verb == "custom":
        raise ValueError(f"a rule needs one of get, put, post, delete, patch: {rule}")
    return verb.upper(), PathTemplate.parse(getattr(rule, verb))


def _closed_under_meet(templates: set[PathTemplate]) -> set[PathTemplate]:
    """Adds the templates of overlaps until no overlap lacks its own."""
    while True:
        meets = {left.meet(right) for left, right in combinations(templates, 2)}
        fresh = {meet for meet in meets if meet is not None} - templates
        if not fresh:
            return templates
        templates = templates | fresh
