"""Messages and enums as schemas. Requests and answers differ: answers print zeros and never null, requests may say null."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from tools.openapi.bounds import (
    EVERYWHERE,
    EXACTLY_ONE,
    FILLED_IN_ANSWERS,
    IN_REQUESTS,
    JSON_SCHEMAS,
    VARIANTS,
    Schema,
    Variant,
    Variants,
)
from tools.openapi.contract import PACKAGE, Contract, is_required
from tools.openapi.specs import nullable, spec_schemas

Field = FieldDescriptorProto
MessageSchema = Callable[[str], Schema]

_SCALARS: dict[int, Schema] = {
    Field.TYPE_STRING: {"type": "string"},
    Field.TYPE_BOOL: {"type": "boolean"},
    Field.TYPE_INT32: {"type": "integer", "format": "int32"},
    Field.TYPE_DOUBLE: {"type": "number", "format": "double"},
}
_WELL_KNOWN: dict[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Struct": {"$ref": "#/components/schemas/JsonObject"},
}
# The enum Job.Status has the better right to the name.
_RENAMED = {"JobStatus": "JobStatusReport"}
_SEE = re.compile(r"See (\w+(?:\.\w+)*)[.;] ?")


def reference(component: str) -> Schema:
    """A $ref to a schema."""
    return {"$ref": f"#/components/schemas/{component}"}


class Schemas:
    """Collects the components that the operations refer to."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._sources: dict[str, str] = {}
        self.components: dict[str, Schema] = {**JSON_SCHEMAS, **spec_schemas(contract)}

    def answer(self, full_name: str) -> Schema:
        """A reference to a message as answers carry it."""
        name = _local(full_name)
        component = self._claim(_component(name), f"answer {name}")
        if component not in self.components:
            self.components[component] = {}  # a message may refer to itself
            self.components[component] = self._answer(full_name)
        return reference(component)

    def request(self, full_name: str, without: Collection[str] = ()) -> Schema:
        """A reference to a message as requests carry it, without the fields that the path carries."""
        name = _local(full_name)
        own_name = name if name.endswith("Request") else f"{name}.Request"
        component = self._claim(_component(own_name), f"request {name}")
        if component not in self.components:
            variants = VARIANTS.get(name)
            self.components[component] = (
                self._one_of(full_name, variants) if variants else self._request(full_name, without)
            )
        return reference(component)

    def parameter(self, message: str, field: Field) -> Schema:
        """The schema of a path or query parameter, without its description."""
        schema = self._bounded(self._type_in_request(field), message, field)
        return {key: value for key, value in schema.items() if key != "description"}

    def described(self, message: str, field: Field) -> str:
        """What a field means; references to another field's comment are followed."""
        text = self._contract.comments[f"{message}.{field.name}"]
        found = _SEE.match(text)
        if found is None:
            return text
        rest = text[found.end() :]
        return f"{self._contract.comments[f'{PACKAGE}.{found[1]}']} {rest[:1].upper()}{rest[1:]}".strip()

    def fields(self, full_name: str) -> list[Field]:
        """The fields of a message in the order of the file."""
        return list(self._contract.messages[full_name].field)

    def _claim(self, component: str, source: str) -> str:
        if self._sources.setdefault(component, source) != source:
            raise ValueError(f"two schemas want the name {component}: {self._sources[component]} and {source}")
        return component

    def _answer(self, full_name: str) -> Schema:
        name, fields = _local(full_name), self.fields(full_name)
        properties = {
            field.name: self._described(
                self._field(field, self.answer) | EVERYWHERE.get(field.name, {}), full_name, field
            )
            for field in fields
        }
        always = [field.name for field in fields if not field.proto3_optional or name in FILLED_IN_ANSWERS]
        schema = _object(self._contract.comments[full_name], properties, always)
        if name in EXACTLY_ONE:
            schema["oneOf"] = [{"required": [field]} for field in EXACTLY_ONE[name]]
        return schema

    def _request(self, full_name: str, without: Collection[str]) -> Schema:
        fields = [field for field in self.fields(full_name) if field.name not in without]
        properties = {field.name: self._request_property(full_name, field, is_required(field)) for field in fields}
        required = [field.name for field in fields if is_required(field)]
        return _object(self._contract.comments[full_name], properties, required)

    def _request_property(self, message: str, field: Field, required: bool) -> Schema:
        schema = self._bounded(self._type_in_request(field), message, field)
        return self._described(schema if required else nullable(schema), message, field)

    def _one_of(self, full_name: str, variants: Variants) -> Schema:
        mapping = {}
        for value, variant in variants.by_value.items():
            self._claim(variant.component, f"{variants.decided_by} {value}")
            self.components[variant.component] = self._variant(full_name, variants.decided_by, value, variant)
            mapping[value] = reference(variant.component)
        return {
            "description": self._contract.comments[full_name],
            "oneOf": list(mapping.values()),
            "discriminator": {
                "propertyName": variants.decided_by,
                "mapping": {value: schema["$ref"] for value, schema in mapping.items()},
            },
        }

    def _variant(self, full_name: str, decided_by: str, value: str, variant: Variant) -> Schema:
        fields = [
            field
            for field in self.fields(full_name)
            if variant.fields is None or field.name in (decided_by, *variant.fields)
        ]
        required = [field.name for field in fields if is_required(field) or field.name in variant.required]
        properties = {field.name: self._request_property(full_name, field, field.name in required) for field in fields}
        properties[decided_by] = {
            "type": "string",
            "const": value,
            "description": properties[decided_by]["description"],
        }
        if variant.spec is not None:
            properties["spec"] = reference(variant.spec)
        own = f"{self._contract.comments[full_name]} Here: `{decided_by}` is {value}."
        return _object(own, properties, required)

    def _type_in_request(self, field: Field) -> Schema:
        return self._field(field, self.request)

    def _field(self, field: Field, message: MessageSchema) -> Schema:
        schema = self._single(field, message)
        return {"type": "array", "items": schema} if field.label == Field.LABEL_REPEATED else schema

    def _single(self, field: Field, message: MessageSchema) -> Schema:
        type_name = field.type_name.removeprefix(".")
        if field.type == Field.TYPE_ENUM:
            return self._enum(type_name)
        if field.type == Field.TYPE_MESSAGE:
            return dict(_WELL_KNOWN[type_name]) if type_name in _WELL_KNOWN else message(type_name)
        return dict(_SCALARS[field.type])

    def _bounded(self, schema: Schema, message: str, field: Field) -> Schema:
        key = f"{_local(message)}.{field.name}"
        bounds = EVERYWHERE.get(field.name) or IN_REQUESTS.get(key) or IN_REQUESTS.get(field.name) or {}
        if "anyOf" in bounds:
            return dict(bounds)
        if "items" in bounds:
            bounds = {**bounds, "items": {**schema["items"], **bounds["items"]}}
        return {**schema, **bounds}

    def _described(self, schema: Schema, message: str, field: Field) -> Schema:
        description = self.described(message, field)
        return {**schema, "description": description} if description else schema

    def _enum(self, full_name: str) -> Schema:
        component = self._claim(_component(_local(full_name)), f"enum {full_name}")
        if component not in self.components:
            values = [value.name for value in self._contract.enums[full_name].value if value.number]
            meanings = [f"- `{value}`: {self._contract.comments[f'{full_name}.{value}']}" for value in values]
            text = "\n".join([self._contract.comments[full_name], "", *meanings])
            self.components[component] = {"description": text, "type": "string", "enum": values}
        return reference(component)


def _object(description: str, properties: dict[str, Schema], required: list[str]) -> Schema:
    schema: Schema = {"description": description, "type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema


def _local(full_name: str) -> str:
    return full_name.removeprefix(f"{PACKAGE}.")


def _component(local_name: str) -> str:
    """`Job.Trigger` is JobTrigger: names with dots trouble generators of clients."""
    first, *rest = local_name.split(".")
    return "".join([_RENAMED.get(first, first), *rest])
