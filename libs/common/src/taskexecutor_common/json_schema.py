"""JSON Schemas that users bring: compiled within bounds, and inputs held against them.

Schemas and inputs come from strangers, so neither may reach outside or keep us busy:

- references stay inside the schema (`#...` or an `$id` of its own); nothing is ever fetched,
- patterns run on an engine whose time is linear in the text, which knows neither lookaround nor backreferences,
- a schema is bounded in bytes, in nesting, and in its parts *with all references written out*: a chain of definitions
  that each refer twice to the next fits on a page and takes years to evaluate,
- where saying what is wrong would cost too much (see `_MAX_EFFORT`), fewer problems are told, or only that there is one.

Drafts 4, 6, 7, 2019-09 and 2020-12 are understood, 2020-12 without `$schema`. `format` is asserted in all of them:
whoever writes `"format": "email"` expects it to be checked. Formats nobody knows are notes.
Integral numbers are integers however they were written: 12.0 arrives here as 12.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from itertools import islice
from math import prod
from typing import Any

import jsonschema_rs as js
import orjson

from .errors import InputValidationFailed, InvalidSchema

MAX_SCHEMA_BYTES = 128 * 1024
MAX_SCHEMA_NESTING = 64
MAX_SCHEMA_PARTS = 10_000
MAX_SCHEMA_DEFINITIONS = 500
MAX_PROBLEMS = 5

# A compiled pattern's size in bytes, which is what its time per character grows with; `^.{1,255}$` fits well.
_PATTERN_OPTIONS = js.RegexOptions(size_limit=1024 * 1024)

# Explaining a failure visits every branch of every `anyOf`, about 50 µs each, so this is half a second.
_MAX_EFFORT = 10_000

_BASE_URI = "json-schema:///"
_META_SCHEMAS = ("http://json-schema.org/", "https://json-schema.org/")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# The keywords that hold schemas: for the same value, for values inside it, and those of both that hold them by name.
_BESIDE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})
_BELOW = frozenset(
    {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"}
    | {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"}
)
_BY_NAME = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})

_PATTERN_ADVICE = "it is malformed, looks around or back, or repeats too much (maxLength bounds a text)."

_HEAD_CHARS, _TAIL_CHARS = 160, 80

_Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema ready to be used, from any thread."""

    _validator: js.Validator
    _size: _Size

    def validate(self, value: Any, *, field: str = "input") -> None:
        """Holds a JSON value against the schema.

        Raises InputValidationFailed. Its message tells up to MAX_PROBLEMS problems, each with the path at fault, such
        as `input.amount: 12.5 is not of type "integer"`; its `field` is the dotted path of the first one.
        """
        try:
            # Far cheaper than the check itself, and safe where that is not: it ends at 254 levels of nesting.
            orjson.dumps(value)
            if self._validator.is_valid(value):
                return
            problems = self._problems(value)
        except (TypeError, ValueError) as error:
            raise InputValidationFailed(f"{field}: cannot be checked: {_cut(str(error))}", field=field) from None
        raise _failure(problems, field)

    def _problems(self, value: Any) -> list[js.ValidationError]:
        """As many problems of an invalid value as can be found with bounded effort, perhaps none."""
        nodes, depth = _extent(value)
        effort = self._size.parts * self._size.loops**depth
        if effort > _MAX_EFFORT:
            return []
        if effort * nodes <= _MAX_EFFORT:
            return list(self._validator.iter_errors(value))
        try:
            self._validator.validate(value)
        except js.ValidationError as first:
            return [first]
        return []


def compile_schema(schema: dict[str, Any], *, field: str = "schema") -> CompiledSchema:
    """Reads a schema; raises InvalidSchema, whose message says where, for what is none or beyond the bounds."""
    _require_bounds(schema, field)
    try:
        validator = js.validator_for(
            schema, validate_formats=True, pattern_options=_PATTERN_OPTIONS, base_uri=_BASE_URI, offline=True
        )
    except js.ValidationError as error:
        raise _refusal(schema, error, field) from None
    except ValueError as error:
        raise InvalidSchema(f"{field}: {_cut(str(error))}", field=field) from None
    return CompiledSchema(validator, _measure(schema, field))


def _require_bounds(schema: Any, field: str) -> None:
    if not isinstance(schema, dict):
        raise InvalidSchema(f"{field}: must be an object that holds a JSON Schema.", field=field)
    if _extent(schema, MAX_SCHEMA_NESTING)[1] > MAX_SCHEMA_NESTING:
        raise InvalidSchema(f"{field}: is nested more than {MAX_SCHEMA_NESTING} levels deep.", field=field)
    try:
        size = len(orjson.dumps(schema))
    except TypeError as error:
        raise InvalidSchema(f"{field}: is not JSON: {_cut(str(error))}", field=field) from None
    if size > MAX_SCHEMA_BYTES:
        raise InvalidSchema(f"{field}: has {size} bytes of JSON; {MAX_SCHEMA_BYTES} are allowed.", field=field)


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
    """The refusal of the reference that a complaint of the library is about."""
    for place, reference in _references(schema):
        if any(part in complaint for part in reference.split("#") if part):
            where = _dotted(field, place)
            message = (
                f"'{_cut(reference)}' is not found inside the schema; nothing is fetched, so references "
                "must be '#...' or name an $id of the schema itself."
            )
            return InvalidSchema(f"{where}: {message}", field=where)
    return InvalidSchema(f"{field}: {_cut(complaint)}", field=field)


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
    """How often a schema can look at a value.

    `parts` counts its subschemas with all references written out, recursion once round. Where it is recursive, each
    further level of a value may multiply the ways to look at it by `loops`.
    """

    parts: int
    loops: int


@dataclass(slots=True)
class _Definition:
    """What somebody refers to: its own subschemas, and the definitions it refers to, as often as it does.

    `beside` are those that look at the same value, `below` those that look at values inside it.
    """

    parts: int = 0
    beside: list[int] = dataclass_field(default_factory=list)
    below: list[int] = dataclass_field(default_factory=list)

    @property
    def refers_to(self) -> list[int]:
        return self.beside + self.below


class _TooLarge(Exception):
    """It has no bounded end; the text completes a sentence about the schema."""


def _measure(schema: dict[str, Any], field: str) -> _Size:
    """The size of a schema; InvalidSchema if it is out of bounds or refers to something outside."""
    try:
        registry = js.Registry([(_BASE_URI, schema)], retriever=_never_retrieve)
        size = _size_of(_definitions(schema, registry.resolver(_BASE_URI)))
    except (js.ReferencingError, ValueError) as error:
        raise _bad_reference(schema, str(error), field) from None
    except _TooLarge as error:
        raise InvalidSchema(f"{field}: {error}", field=field) from None
    return size


def _definitions(schema: dict[str, Any], resolver: js.Resolver) -> list[_Definition]:
    """The schema itself and all that it refers to, directly or not."""
    resolver = _inside(schema, resolver)
    numbers = {(resolver.base_uri, "#"): 0}
    bodies: list[tuple[Any, js.Resolver]] = [(schema, resolver)]
    definitions: list[_Definition] = []
    parts = 0
    for body, resolver in bodies:  # which grows while it is read
        definition = _Definition()
        definitions.append(definition)
        for part, scope, is_below in _parts(body, resolver):
            definition.parts += 1
            for text in (part[keyword] for keyword in _REFERENCES if isinstance(part.get(keyword), str)):
                reference = (scope.base_uri, text)
                if reference not in numbers:
                    numbers[reference] = len(bodies)
                    bodies.append(_look_up(text, scope))
                (definition.below if is_below else definition.beside).append(numbers[reference])
        parts += definition.parts
        if parts > MAX_SCHEMA_PARTS or len(bodies) > MAX_SCHEMA_DEFINITIONS:
            raise _TooLarge(f"has more than {MAX_SCHEMA_PARTS} parts or {MAX_SCHEMA_DEFINITIONS} references.")
    return definitions


def _parts(body: Any, resolver: js.Resolver) -> Iterator[tuple[dict[str, Any], js.Resolver, bool]]:
    """All subschemas of a definition, itself included, with their scope and whether they look inside its value."""
    todo: list[tuple[Any, js.Resolver, bool]] = [(body, resolver, False)]
    while todo:
        part, scope, is_below = todo.pop()
        if isinstance(part, dict):
            yield part, scope, is_below
            todo += [(child, _inside(child, scope), is_below or inner) for child, inner in _subschemas(part)]


def _subschemas(schema: dict[str, Any]) -> Iterator[tuple[Any, bool]]:
    """The schemas directly in one, and whether they look inside the value. `$defs` count where they are referred to."""
    for keyword, value in schema.items():
        if keyword not in _BESIDE and keyword not in _BELOW:
            continue
        if keyword in _BY_NAME and isinstance(value, dict):
            children: Iterable[Any] = value.values()
        else:
            children = value if isinstance(value, list) else (value,)
        yield from ((child, keyword in _BELOW) for child in children)


def _inside(schema: Any, resolver: js.Resolver) -> js.Resolver:
    """The scope of what stands in a schema, which may have an `$id` and so be a resource of its own."""
    own = schema.get("$id") if isinstance(schema, dict) else None
    return resolver.lookup(own).resolver if isinstance(own, str) and not own.startswith("#") else resolver


def _look_up(reference: str, scope: js.Resolver) -> tuple[Any, js.Resolver]:
    found = scope.lookup(reference)
    if found.resolver.base_uri.startswith(_META_SCHEMAS):  # the library brings them along
        raise js.ReferencingError(f"'{reference}' is not inside the schema")
    return found.contents, found.resolver


def _never_retrieve(uri: str) -> Any:
    raise ValueError(f"'{uri}' is not inside the schema")


def _size_of(definitions: list[_Definition]) -> _Size:
    """Adds up what stands behind each reference; a circle of references counts once and shows in `loops`.

    That is how the validator works: it remembers what it found in recursive definitions, and repeats all others.
    """
    reach = _reach(definitions)
    sizes: dict[int, int] = {}
    loops = 1
    # What a definition reaches reaches less than itself, but for the members of its circle.
    for number in sorted(range(len(definitions)), key=lambda n: reach[n].bit_count()):
        circle = [n for n in range(len(definitions)) if n == number or reach[number] >> n & reach[n] >> number & 1]
        members = [definitions[n] for n in circle]
        leaving = [n for member in members for n in member.refers_to if n not in circle]
        sizes[number] = sum(member.parts for member in members) + sum(sizes[n] for n in leaving)
        if sizes[number] > MAX_SCHEMA_PARTS:
            raise _TooLarge(f"has more than {MAX_SCHEMA_PARTS} parts once its references are written out.")
        loops = max(loops, _loops(members, set(circle)))
    return _Size(sizes[0], loops)


def _reach(definitions: list[_Definition]) -> list[int]:
    """For each definition a bit for each one that it leads to, itself only if it is recursive (Warshall's algorithm)."""
    reach = [0] * len(definitions)
    for number, definition in enumerate(definitions):
        for other in definition.refers_to:
            reach[number] |= 1 << other
    for middle in range(len(reach)):
        for number in range(len(reach)):
            if reach[number] >> middle & 1:
                reach[number] |= reach[middle]
    return reach


def _loops(members: list[_Definition], circle: set[int]) -> int:
    """How many times at most the members of a circle look at a value inside for each look at the value itself."""
    beside = (sum(n in circle for n in member.beside) for member in members)
    below = (sum(n in circle for n in member.below) for member in members)
    return prod(max(1, count) for count in beside) * max(below)


# What is told


def _failure(problems: list[js.ValidationError], field: str) -> InputValidationFailed:
    if not problems:
        return InputValidationFailed(f"{field}: does not match the schema; it is too nested to say where.", field=field)
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
