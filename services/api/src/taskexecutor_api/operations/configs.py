"""Configs: create, change, delete."""

from __future__ import annotations

from typing import Any

from taskexecutor_common.errors import ConfigNotFound, Conflict, NameTaken
from taskexecutor_common.model.setup import Config, ReferenceKind
from taskexecutor_common.store.setup import SetupStore
from taskexecutor_common.templates import Placeholder, TemplateError


async def create_config(store: SetupStore, namespace: str, name: str, values: dict[str, Any]) -> Config:
    """Stores the first revision. Raises NameTaken."""
    config = await store.create_config(namespace, name, values)
    if config is None:
        raise NameTaken(f"name: a config '{name}' exists already", field="name")
    return config


async def update_config(store: SetupStore, namespace: str, name: str, values: dict[str, Any]) -> Config:
    """Stores the next revision. Raises ConfigNotFound, and Conflict when an endpoint's template names what it lacks."""
    config, broken = await store.update_config(namespace, name, values, lambda path: not has_path(values, path))
    if broken:
        first = broken[0]
        raise Conflict(f"values.{first.path}: endpoint {first.endpoint} refers to it as {{{{config.{first.path}}}}}")
    if config is None:
        raise ConfigNotFound.named(name)
    return config


def has_path(values: dict[str, Any], path: str) -> bool:
    """True when a template that names `config.<path>` would find something."""
    try:
        Placeholder("config", tuple(path.split(".")), f"config.{path}").resolve({"config": values})
    except TemplateError:
        return False
    return True


async def delete_config(store: SetupStore, namespace: str, name: str) -> None:
    """Deletes what no endpoint names. Raises ConfigNotFound, Conflict."""
    existed, endpoints = await store.delete(ReferenceKind.CONFIG, namespace, name)
    if not existed:
        raise ConfigNotFound.named(name)
    if endpoints:
        raise Conflict(f"config '{name}' is used by endpoint {', '.join(endpoints)}")
