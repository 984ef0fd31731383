"""What can go wrong: the errors of each operation, read from its comment, as shared responses."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tools.openapi.bounds import Schema
from tools.openapi.contract import PACKAGE, Contract, Operation

_CODES = f"{PACKAGE}.ErrorCode.Value"
_STATUS = re.compile(r"(\d{3})(?:: |\.)")
_ERRORS = re.compile(r"\s*Errors: (.*)$")
_STATUS_SAID = re.compile(r" REST answers \d{3}\.")
_CODE_LIKE = re.compile(r"\b[A-Z]+(?:_[A-Z]+)*\b")
_BORROWED = re.compile(r"those of (\w+)")

_OF_ALL = (
    "INVALID_REQUEST",
    "UNAUTHORIZED",
    "FORBIDDEN",
    "RATE_LIMITED",
    "INTERNAL_ERROR",
    "UNAVAILABLE",
    "DEADLINE_EXCEEDED",
)
_OF_BODIES = ("PAYLOAD_TOO_LARGE",)
_RETRY_AFTER = {"429", "503"}

REQUEST_ID_HEADER = {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}}
_RETRY_AFTER_HEADER = {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}}


@dataclass(frozen=True)
class Code:
    """A code of the contract."""

    name: str
    number: int
    status: str
    """The HTTP status, three digits."""
    meaning: str


def prose(comment: str) -> str:
    """An RPC's comment without what becomes responses: its list of errors, and its status where it has only one."""
    return _STATUS_SAID.sub("", _ERRORS.sub("", comment))


class Failures:
    """Collects the responses that the operations refer to."""

    def __init__(self, contract: Contract) -> None:
        self._codes = _read_codes(contract)
        self._comments = {operation.name: operation.comment for operation in contract.operations()}
        self.components: dict[str, Schema] = {}

    def error_schema(self) -> Schema:
        """The schema Error, the brief's shape."""
        properties = {
            "code": {"type": "string", "enum": list(self._codes), "description": self._table()},
            "message": {"type": "string", "description": "What is wrong and where; for people, it may change."},
            "request_id": {
                "type": ["string", "null"],
                "description": (
                    "The answer's `X-Request-Id`. Null only where the gateway gave up before it had read the headers."
                ),
            },
        }
        error = {
            "description": "What went wrong.",
            "type": "object",
            "properties": properties,
            "required": list(properties),
        }
        return {
            "description": "The body of every error.",
            "type": "object",
            "properties": {"error": error},
            "required": ["error"],
        }

    def responses(self, operation: Operation) -> dict[str, Schema]:
        """References to the responses of an operation, by status."""
        names = {*_OF_ALL, *self._named_in(operation.name), *(_OF_BODIES if operation.has_body else ())}
        return self.by_status(names)

    def by_status(self, names: Iterable[str]) -> dict[str, Schema]:
        """References to the responses for some codes, by status."""
        grouped: defaultdict[str, list[Code]] = defaultdict(list)
        for code in sorted((self._codes[name] for name in names), key=lambda code: (code.status, code.number)):
            grouped[code.status].append(code)
        return {status: self._reference(status, codes) for status, codes in grouped.items()}

    def _named_in(self, operation: str) -> set[str]:
        found = _ERRORS.search(self._comments[operation])
        if found is None:
            return set()
        names = {word for word in _CODE_LIKE.findall(found[1]) if word in self._codes or "_" in word}
        if unknown := names - self._codes.keys():
            raise ValueError(f"{operation}: the comment names codes that do not exist: {', '.join(sorted(unknown))}")
        return names.union(*(self._named_in(other) for other in _BORROWED.findall(found[1])))

    def _reference(self, status: str, codes: list[Code]) -> Schema:
        component = "Or".join(code.name.title().replace("_", "") for code in codes)
        self.components[component] = _response(status, codes)
        return {"$ref": f"#/components/responses/{component}"}

    def _table(self) -> str:
        lines = [f"- `{code.name}` ({code.status}): {code.meaning}" for code in self._codes.values()]
        return "\n".join(["One cause each.", "", *lines])


def _response(status: str, codes: list[Code]) -> Schema:
    narrowed = {"properties": {"error": {"properties": {"code": {"enum": [code.name for code in codes]}}}}}
    return {
        "description": " ".join(f"`{code.name}`: {code.meaning}" for code in codes),
        "headers": REQUEST_ID_HEADER | (_RETRY_AFTER_HEADER if status in _RETRY_AFTER else {}),
        "content": {
            "application/json": {"schema": {"allOf": [{"$ref": "#/components/schemas/Error"}, narrowed]}},
        },
    }


def _read_codes(contract: Contract) -> dict[str, Code]:
    codes = {}
    for value in contract.enums[_CODES].value:
        if not value.number:
            continue
        comment = contract.comments[f"{_CODES}.{value.name}"]
        found = _STATUS.match(comment)
        if found is None:
            raise ValueError(f"the comment of {value.name} does not begin with its HTTP status: {comment!r}")
        meaning = comment[found.end() :] or value.name.replace("_", " ").lower() + "."
        codes[value.name] = Code(value.name, value.number, found[1], meaning[0].upper() + meaning[1:])
    return codes
