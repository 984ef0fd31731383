"""JSON Schemas that users bring: compiled within bounds, and inputs held against them.

Schemas and inputs come from strangers, so neither may reach outside or keep us busy:

- references stay inside the schema (`#...` or an `$id` of its own); nothing is ever fetched,
- patterns run on an engine whose time is linear in the text, which knows neither lookaround nor backreferences,
- a schema is bounded in bytes, in patterns, in nesting, and in its parts *with all references written out*: a chain of
  definitions that each refer twice to the next fits on a page and takes years to evaluate,
- what an input costs at most is known before: `validate_at_once` does only what takes less than a tenth of a second,
  whatever schema and input are, and whoever serves others besides does the rest elsewhere,
- where telling what is wrong would cost too much, fewer problems are told, or only that there is one.

Drafts 4, 6, 7, 2019-09 and 2020-12 are understood, 2020-12 without `$schema`. `format` is asserted in all of them:
whoever writes `"format": "email"` expects it to be checked. Formats nobody knows are notes.
Integral numbers are integers however they were written: 12.0 arrives here as 12.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import jsonschema_rs as js
import orjson

from .errors import InputValidationFailed, InvalidSchema

MAX_SCHEMA_BYTES = 128 * 1024
MAX_SCHEMA_NESTING = 64
MAX_NESTING_WRITTEN_OUT = 200
MAX_SCHEMA_PARTS = 10_000
MAX_LISTED = 200_000
MAX_PATTERNS = 500
MAX_PROBLEMS = 5

# A compiled pattern's size in bytes, which is what its time per character grows with at worst; `^.{1,255}$` fits well.
_MAX_PATTERN_BYTES = 1024 * 1024
# All of them together, which is memory that a schema holds.
_MAX_PATTERNS_BYTES = 8 * 1024 * 1024
_PATTERN_SIZES = tuple(1024 << n for n in range(11))
_PATTERN_OPTIONS = js.RegexOptions(size_limit=_MAX_PATTERN_BYTES, dfa_size_limit=64 * 1024)

# Bytes of input times parts of the schema. Only a schema all of whose parts look at every byte takes seconds for that.
_MAX_EFFORT = 1_000_000_000
# To tell what is wrong takes up to 20 µs for each look of a part at a value, so this is a second.
_MAX_EFFORT_TO_TELL = 50_000

# The stack of a process is enough for 50,000 such calls where the value is bad, and twice as many where it is good.
_MAX_CALLS_TO_TELL = 10_000
assert MAX_NESTING_WRITTEN_OUT * 255 < 60_000  # the deepest value that there may be

# What is slow beyond what can be seen of it, in looks of an ordinary part at a byte of input, each up to 30 ns:
# a pattern whose states are too many for a table, for so many of its own bytes,
_PATTERN_BYTES_PER_LOOK = 256
# a division without rounding, of numbers that may have hundreds of digits,
_DIVISION_LOOKS = 300
# and all that stands below `unevaluated...`, which goes through it again, by each level of that.
_UNEVALUATED_LOOKS = 8

# What `validate_at_once` takes on: bytes of input times looks, and looks at values to tell what is wrong.
_EFFORT_AT_ONCE = 1_000_000
_EFFORT_TO_TELL_AT_ONCE = 1_000

_BASE_URI = "json-schema:///"
_META_SCHEMAS = ("http://json-schema.org/", "https://json-schema.org/")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# Keywords that hold schemas by name, and keywords that are one or a list of them.
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})
_SCHEMAS = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "items", "additionalItems", "prefixItems"}
    | {"unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties", "propertyNames"}
)

_LISTS = ("enum", "const", "required", "dependentRequired", "dependencies")
_UNEVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})

_PATTERN_ADVICE = "it is malformed, looks around or back, or repeats too much (maxLength bounds a text)."

_HEAD_CHARS, _TAIL_CHARS = 160, 80

_Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema ready to be used."""

    text: str
    """The schema as JSON."""
    _validator: js.Validator
    _size: _Size

    def validate_at_once(self, value: Any, *, field: str = "input") -> bool:
        """Does what `validate` does, or nothing: False for a value that might take a tenth of a second or more."""
        if _bytes_of(value, field) * self._size.looks * max(1, self._size.loops) > _EFFORT_AT_ONCE:
            return False
        if self._is_valid(value, field):
            return True
        nodes, depth = _extent(value)
        if self._size.to_tell(depth) * nodes > _EFFORT_TO_TELL_AT_ONCE:
            return False
        raise _failure(self._problems(value), field)

    def validate(self, value: Any, *, field: str = "input") -> None:
        """Holds a JSON value against the schema. What has passed `validate_at_once` aside, this may take seconds.

        Raises InputValidationFailed. Its message tells up to MAX_PROBLEMS problems, each with the path at fault, such
        as `input.amount: 12.5 is not of type "integer"`; its `field` is the dotted path of the first one.
        """
        effort = _bytes_of(value, field) * self._size.parts * max(1, self._size.loops)
        if effort > _MAX_EFFORT:
            raise InputValidationFailed(f"{field}: is too large for a schema with so many parts.", field=field)
        if not self._is_valid(value, field):
            raise _failure(self._problems(value), field)

    def _is_valid(self, value: Any, field: str) -> bool:
        try:
            return self._validator.is_valid(value)
        except ValueError as error:
            raise InputValidationFailed(f"{field}: cannot be checked: {_cut(str(error))}", field=field) from None

    def _problems(self, value: Any) -> list[js.ValidationError]:
        """As many problems of an invalid value as can be told with bounded effort, perhaps none."""
        nodes, depth = _extent(value)
        effort = self._size.to_tell(depth)
        if effort > _MAX_EFFORT_TO_TELL or self._size.calls(depth) > _MAX_CALLS_TO_TELL:
            return []
        if effort * nodes <= _MAX_EFFORT_TO_TELL:
            return list(self._validator.iter_errors(value))
        try:
            self._validator.validate(value)
        except js.ValidationError as first:
            return [first]
        return []


def compile_schema(schema: dict[str, Any], *, field: str = "schema") -> CompiledSchema:
    """Reads a schema; raises InvalidSchema, whose message says where, for what is none or beyond the bounds."""
    text = _require_bounds(schema, field)
    _compile({"$schema": schema["$schema"]} if "$schema" in schema else {}, schema, field)
    # Before the whole is compiled: what has no bounds takes the memory of all, or ends the process.
    size = _measure(schema, _measure_patterns(schema, field), field)
    return CompiledSchema(text, _compile(schema, schema, field), size)


def _compile(part: dict[str, Any], schema: dict[str, Any], field: str) -> js.Validator:
    """Compiles a part of a schema, which may be all of it."""
    try:
        return js.validator_for(
            part, validate_formats=True, pattern_options=_PATTERN_OPTIONS, base_uri=_BASE_URI, offline=True
        )
    except js.ValidationError as error:
        raise _refusal(schema, error, field) from None
    except ValueError as error:
        raise InvalidSchema(f"{field}: {_cut(str(error))}", field=field) from None


def _require_bounds(schema: Any, field: str) -> str:
    """The schema as JSON."""
    if not isinstance(schema, dict):
        raise InvalidSchema(f"{field}: must be an object that holds a JSON Schema.", field=field)
    if _extent(schema, MAX_SCHEMA_NESTING)[1] > MAX_SCHEMA_NESTING:
        raise InvalidSchema(f"{field}: is nested more than {MAX_SCHEMA_NESTING} levels deep.", field=field)
    try:
        text = orjson.dumps(schema)
    except TypeError as error:
        raise InvalidSchema(f"{field}: is not JSON: {_cut(str(error))}", field=field) from None
    if len(text) > MAX_SCHEMA_BYTES:
        raise InvalidSchema(f"{field}: has {len(text)} bytes of JSON; {MAX_SCHEMA_BYTES} are allowed.", field=field)
    return text.decode()


def _measure_patterns(schema: dict[str, Any], field: str) -> dict[str, int]:
    """How large each pattern is once it is compiled, in bytes and rounded up; 0 for one that cannot be compiled, which the
    library says better. Raises InvalidSchema for too many of them, or too much."""
    found = Counter(_patterns(schema))
    if found.total() > MAX_PATTERNS:
        raise InvalidSchema(f"{field}: has {found.total()} patterns; {MAX_PATTERNS} are allowed.", field=field)
    sizes, total = {}, 0
    for pattern, count in found.items():
        sizes[pattern] = _compiled_bytes(pattern)
        total += sizes[pattern] * count
        if total > _MAX_PATTERNS_BYTES:
            message = "has patterns that are too large together; some repeat too much (maxLength bounds a text)."
            raise InvalidSchema(f"{field}: {message}", field=field)
    return sizes


def _patterns(schema: Any) -> Iterator[str]:
    todo = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield from _own_patterns(node)
        todo += _children(node)


def _own_patterns(part: dict[str, Any]) -> Iterator[str]:
    if isinstance(pattern := part.get("pattern"), str):
        yield pattern
    if isinstance(named := part.get("patternProperties"), dict):
        yield from named


def _compiled_bytes(pattern: str) -> int:
    """The library does not say how large a pattern is, but whether it fits."""
    for size in _PATTERN_SIZES:
        try:
            js.validator_for({"pattern": pattern}, pattern_options=js.RegexOptions(size_limit=size), offline=True)
        except js.ValidationError:
            continue
        return size
    return 0


def _extent(value: Any, enough: int | None = None) -> tuple[int, int]:
    """How many nodes a JSON value has and how deep they lie (0 for a scalar); stops beyond a depth that is enough."""
    nodes, depth, level = 1, 0, [value]
    while level and (enough is None or depth <= enough):
        level = [child for node in level for child in _children(node)]
        nodes += len(level)
        depth += bool(level)
    return nodes, depth


def _children(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def _bytes_of(value: Any, field: str) -> int:
    """The size of a value as JSON. Native and quick, and safe where the check is not: deep nesting would crash that."""
    try:
        return len(orjson.dumps(value))
    except TypeError:
        message = "must be JSON, with integers of at most 64 bits and nested at most 254 levels deep."
        raise InputValidationFailed(f"{field}: {message}", field=field) from None


# What is wrong with a schema


def _refusal(schema: dict[str, Any], error: js.ValidationError, field: str) -> InvalidSchema:
    """The error for what the library complains about when it compiles a schema."""
    place: _Place = tuple(error.instance_path)
    match error.kind:
        case js.ValidationErrorKind.Referencing() if "meta-schema" in error.message:
            place = ("$schema",)
            message = (
                f"'{_cut(str(schema.get('$schema')))}' is no draft that is understood; without it, 2020-12 is meant."
            )
        case js.ValidationErrorKind.Referencing():
            return _bad_reference(schema, error.message, field)
        case js.ValidationErrorKind.Format(format="regex"):
            message = f"{_cut(error.message)} that can be run: {_PATTERN_ADVICE}"
        case js.ValidationErrorKind.AnyOf(context=[[nearest, *_], *_]):
            message = _cut(nearest.message)
        case _:
            message = _cut(error.message)
    return InvalidSchema(f"{_dotted(field, place)}: {message}", field=_dotted(field, place))


def _bad_reference(schema: dict[str, Any], complaint: str, field: str) -> InvalidSchema:
    """The refusal of the reference that a complaint is about, which may show it resolved and without its fragment."""

    def mentioned(reference: str) -> int:
        bare = (part.lstrip("./") for part in reference.split("#"))
        return max((len(part) for part in bare if part in complaint), default=0)

    place, reference = max(_references(schema), key=lambda found: mentioned(found[1]), default=((), ""))
    if not mentioned(reference):
        return InvalidSchema(f"{field}: {_cut(complaint)}", field=field)
    where = _dotted(field, place)
    message = (
        f"'{_cut(reference)}' is not found inside the schema; nothing is fetched, so references "
        "must be '#...' or name an $id of the schema itself."
    )
    return InvalidSchema(f"{where}: {message}", field=where)


def _references(schema: dict[str, Any]) -> Iterator[tuple[_Place, str]]:
    todo: list[tuple[_Place, Any]] = [((), schema)]
    while todo:
        place, node = todo.pop()
        if isinstance(node, dict):
            yield from (((*place, key), node[key]) for key in _REFERENCES if isinstance(node.get(key), str))
            todo += [((*place, key), child) for key, child in node.items()]
        elif isinstance(node, list):
            todo += [((*place, index), child) for index, child in enumerate(node)]


# How large a schema really is


@dataclass(frozen=True, slots=True)
class _Size:
    """The parts of a schema with its references written out, up to those `loops` references at which it begins anew."""

    parts: int
    loops: int
    nesting: int
    listed: int
    """Names and values that the parts list; each is kept in memory, and is a problem when a value is none of them."""
    looks: int
    """What a byte of input costs at most, in the looks of an ordinary part."""

    def calls(self, depth: int) -> int:
        """How deep the library calls itself at most for a value that lies so deep inside another."""
        return self.nesting * (depth + 1 if self.loops else 1)

    def to_tell(self, depth: int) -> int:
        """What the problems of a value cost, which lies so deep inside another."""
        times: int = max(1, self.loops) ** depth
        return (self.parts + self.listed) * times


def _measure(schema: dict[str, Any], patterns: Mapping[str, int], field: str) -> _Size:
    """The size of a schema; InvalidSchema if it is out of bounds or refers to something outside."""
    try:
        resolver = js.Registry([(_BASE_URI, schema)], retriever=_never_retrieve).resolver(_BASE_URI)
        size = _write_out(schema, resolver, patterns)
    except (js.ReferencingError, ValueError) as error:
        raise _bad_reference(schema, str(error), field) from None
    fault = None
    if size.parts > MAX_SCHEMA_PARTS:
        fault = (
            f"has more than {MAX_SCHEMA_PARTS} parts once its references are written out; "
            "alternatives that several definitions share belong into one of their own."
        )
    elif size.nesting > MAX_NESTING_WRITTEN_OUT:
        fault = f"is nested more than {MAX_NESTING_WRITTEN_OUT} levels deep once its references are written out."
    elif size.listed > MAX_LISTED:
        fault = f"lists more than {MAX_LISTED} names and values once its references are written out."
    if fault:
        raise InvalidSchema(f"{field}: {fault}", field=field)
    return size


def _write_out(schema: dict[str, Any], resolver: js.Resolver, patterns: Mapping[str, int]) -> _Size:
    """Walks through a schema and into each reference, unless the way has led through it before; gives up when too large.

    The validator does the same, once per value: it remembers its findings where a schema begins anew, and only there.
    """
    scope = _inside(schema, resolver)
    found: dict[tuple[str, str], tuple[Any, js.Resolver]] = {}
    todo: list[tuple[Any, js.Resolver, frozenset[tuple[str, str]], int, int]] = [
        (schema, scope, frozenset({(scope.base_uri, "#")}), 1, 1)
    ]
    parts = loops = nesting = listed = looks = 0
    while todo and max(parts / MAX_SCHEMA_PARTS, nesting / MAX_NESTING_WRITTEN_OUT, listed / MAX_LISTED) <= 1:
        part, scope, way, depth, times = todo.pop()
        if not isinstance(part, dict):
            continue
        parts += 1
        nesting = max(nesting, depth)
        listed += _listed(part)
        if not _UNEVALUATED.isdisjoint(part):
            times *= _UNEVALUATED_LOOKS
        looks += times * _looks(part, patterns)
        todo += [(child, _inside(child, scope), way, depth + 1, times) for child in _subschemas(part)]
        for text in (part[keyword] for keyword in _REFERENCES if isinstance(part.get(keyword), str)):
            reference = (scope.base_uri, text)
            if reference in way:
                loops += 1
                continue
            if reference not in found:
                found[reference] = _look_up(text, scope)
            todo.append((*found[reference], way | {reference}, depth + 1, times))
    return _Size(parts, loops, nesting, listed, looks)


def _listed(part: dict[str, Any]) -> int:
    """The names and values that one part lists."""
    values = sum(_extent(part[keyword])[0] for keyword in _LISTS if keyword in part)
    return values + sum(len(part[keyword]) for keyword in _NAMED_SCHEMAS if isinstance(part.get(keyword), dict))


def _looks(part: dict[str, Any], patterns: Mapping[str, int]) -> int:
    """What one part costs: a look for each keyword and each thing that it lists, and for some more than that."""
    looks = len(part) + _listed(part) + (_DIVISION_LOOKS if "multipleOf" in part else 0)
    return looks + sum(patterns[pattern] // _PATTERN_BYTES_PER_LOOK for pattern in _own_patterns(part))


def _subschemas(schema: dict[str, Any]) -> Iterator[Any]:
    """The schemas directly in one; definitions do not count until somebody refers to them."""
    for keyword, value in schema.items():
        if keyword in _NAMED_SCHEMAS and isinstance(value, dict):
            yield from value.values()
        elif keyword in _SCHEMAS:
            yield from value if isinstance(value, list) else (value,)


def _inside(schema: Any, scope: js.Resolver) -> js.Resolver:
    """The scope of what stands in a schema, which may have an `$id` and so be a resource of its own."""
    own = schema.get("$id") if isinstance(schema, dict) else None
    return scope.lookup(own).resolver if isinstance(own, str) and not own.startswith("#") else scope


def _look_up(reference: str, scope: js.Resolver) -> tuple[Any, js.Resolver]:
    """What a reference means in a scope; ValueError if it leads outside, to the drafts the library brings along too."""
    try:
        found = scope.lookup(reference)
    except js.ReferencingError:
        found = None
    if found is None or found.resolver.base_uri.startswith(_META_SCHEMAS):
        raise ValueError(f"'{reference}' is not inside the schema")
    return found.contents, found.resolver


def _never_retrieve(uri: str) -> Any:
    """In the place of the library's own retriever, which would go and fetch."""
    raise ValueError(f"'{uri}' is not inside the schema")


# What is told


def _failure(problems: list[js.ValidationError], field: str) -> InputValidationFailed:
    if not problems:
        return InputValidationFailed(
            f"{field}: does not match the schema, which is too intricate to say where.", field=field
        )
    told = [
        f"{_dotted(field, problem.instance_path)}: {_cut(problem.message)}"
        for problem in islice(problems, MAX_PROBLEMS)
    ]
    if len(problems) > MAX_PROBLEMS:
        told.append(f"and {len(problems) - MAX_PROBLEMS} more")
    return InputValidationFailed("; ".join(told), field=_dotted(field, problems[0].instance_path))


def _dotted(field: str, place: Iterable[str | int]) -> str:
    return _cut(".".join([field, *map(str, place)]))


def _cut(text: str) -> str:
    """A text fit for a message: one line, and its end kept, for that is where a problem says what would be right."""
    if len(text) > _HEAD_CHARS + _TAIL_CHARS:
        text = f"{text[:_HEAD_CHARS]}…{text[-_TAIL_CHARS:]}"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
