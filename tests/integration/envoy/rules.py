"""The google.api.http rules of the public services, from the generated modules: the gateway's own code is not asked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from google.api import annotations_pb2
from google.protobuf.descriptor import FileDescriptor

import taskexecutor.v1

FILES: list[FileDescriptor] = [
    import_module(f"taskexecutor.v1.{module.name}").DESCRIPTOR
    for module in iter_modules(taskexecutor.v1.__path__)
    if module.name.endswith("_pb2")
]


@dataclass(frozen=True)
class Rule:
    """One REST binding: the verb, a path template, and the gRPC method behind them."""

    verb: str
    template: str
    method: str

    @property
    def path(self) -> str:
        """A path of this template."""
        return re.sub(r"\{\w+\}", "some-name", self.template)

    def serves(self, path: str) -> bool:
        """Whether `path` is one of this template's."""
        return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", self.template), path) is not None


def _rules() -> list[Rule]:
    found = []
    for file in FILES:
        for service in file.services_by_name.values():
            for method in service.methods:
                rule = method.GetOptions().Extensions[annotations_pb2.http]
                verb = rule.WhichOneof("pattern")
                if verb is None:  # over gRPC alone
                    continue
                found.append(Rule(verb.upper(), getattr(rule, verb), method.name))
    return found


RULES = _rules()
PATHS = sorted({rule.path for rule in RULES})


def verbs_of(path: str) -> list[str]:
    """The verbs that some rule serves on `path`, sorted."""
    return sorted({rule.verb for rule in RULES if rule.serves(path)})
