"""The schemas of endpoint specs, from the models that check them."""

from __future__ import annotations

import re
from typing import Any

from tools.openapi.bounds import SPEC_FIELDS, SPECS, Schema
from tools.openapi.contract import PACKAGE, Contract

# What pydantic writes for a bound that stands behind a validator of ours.
_BOUNDS = {"ge": "minimum", "le": "maximum"}

# The comment of an endpoint type tells its fields: `url (string, required, http or https), method (...)`.
_MEANING = re.compile(r"(\w+) \(([^()]*)\)")


def spec_schemas(contract: Contract) -> dict[str, Schema]:
    """By component name, such as HttpSpec."""
    texts = {value: contract.comments[f"{PACKAGE}.Endpoint.Type.{value}"] for value in SPECS}
    return {model.__name__: _spec(model.__name__, model.model_json_schema(), texts[t]) for t, model in SPECS.items()}


def _spec(component: str, schema: Schema, comment: str) -> Schema:
    required = schema["required"]
    meanings = dict(_MEANING.findall(comment))
    fields = {}
    for name, field in schema["properties"].items():
        cleaned = SPEC_FIELDS.get(f"{component}.{name}") or _clean(field)
        fields[name] = {**(cleaned if name in required else nullable(cleaned)), "description": meanings[name]}
    return {
        "description": f"{comment.partition(' `spec`:')[0]} Null means absent.",
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": False,
    }


def _clean(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_clean(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned = {_BOUNDS.get(key, key): _clean(value) for key, value in schema.items() if key != "title"}
    if "default" in cleaned and cleaned["default"] is None:
        del cleaned["default"]
    if "anyOf" in cleaned:  # a type or null, which `nullable` says shorter
        return next(option for option in cleaned["anyOf"] if option.get("type") != "null")
    return {"type": cleaned.pop("type"), **cleaned} if "type" in cleaned else cleaned


def nullable(schema: Schema) -> Schema:
    """The schema, or null."""
    if schema.get("$ref", "").endswith("/JsonValue"):
        return schema
    if "$ref" in schema or "format" in schema:  # a list of types with a format confuses readers, programs too
        description = {key: value for key, value in schema.items() if key == "description"}
        one = {key: value for key, value in schema.items() if key != "description"}
        return {"anyOf": [one, {"type": "null"}], **description}
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return schema
