"""Payload specs: create, change, delete."""

from __future__ import annotations

from typing import Any

from taskexecutor_common.errors import Conflict, NameTaken, PayloadSpecNotFound
from taskexecutor_common.json_schema import compile_schema
from taskexecutor_common.model.setup import PayloadSpec, ReferenceKind
from taskexecutor_common.store.setup import SetupStore


async def create_payload_spec(store: SetupStore, namespace: str, name: str, schema: dict[str, Any]) -> PayloadSpec:
    """Stores a schema that compiles. Raises InvalidSchema, NameTaken."""
    compile_schema(schema)
    spec = await store.create_payload_spec(namespace, name, schema)
    if spec is None:
        raise NameTaken(f"name: a payload spec '{name}' exists already", field="name")
    return spec


async def update_payload_spec(store: SetupStore, namespace: str, name: str, schema: dict[str, Any]) -> PayloadSpec:
    """Replaces the schema. Raises InvalidSchema, PayloadSpecNotFound."""
    compile_schema(schema)
    spec = await store.update_payload_spec(namespace, name, schema)
    if spec is None:
        raise PayloadSpecNotFound.named(name)
    return spec


async def delete_payload_spec(store: SetupStore, namespace: str, name: str) -> None:
    """Deletes what no endpoint names. Raises PayloadSpecNotFound, Conflict."""
    existed, endpoints = await store.delete(ReferenceKind.PAYLOAD_SPEC, namespace, name)
    if not existed:
        raise PayloadSpecNotFound.named(name)
    if endpoints:
        raise Conflict(f"payload spec '{name}' is used by endpoint {', '.join(endpoints)}")
