"""Endpoints: register, change, delete. What they refer to is checked here, and not when they are delivered to."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskexecutor_api.operations.find_endpoint import find_endpoint
from taskexecutor_common.endpoint_types.base import CompiledSpec
from taskexecutor_common.endpoint_types.registry import kind_of
from taskexecutor_common.errors import (
    Conflict,
    EndpointNotFound,
    InvalidConfigRef,
    InvalidPayloadSpecRef,
    InvalidRequest,
    NameTaken,
    TaskExecutorError,
    TemplateResolutionFailed,
)
from taskexecutor_common.ids import job_id_text
from taskexecutor_common.model.endpoint import Endpoint, EndpointType, FlowControl, RetryPolicy
from taskexecutor_common.model.setup import Reference, ReferenceKind
from taskexecutor_common.rpc.hints import DispatcherHints
from taskexecutor_common.store.endpoints import EndpointSettings, EndpointStore, ReferencesMissing
from taskexecutor_common.store.setup import SetupStore
from taskexecutor_common.templates import Placeholder, TemplateError


@dataclass(frozen=True, slots=True)
class Registration:
    """What a caller wants an endpoint to be; shapes are checked, contents not yet."""

    endpoint_type: EndpointType
    payload_spec: str | None
    config: str | None
    spec: dict[str, Any]
    retry_policy: RetryPolicy
    flow_control: FlowControl


async def create_endpoint(
    endpoints: EndpointStore, setup: SetupStore, namespace: str, name: str, wanted: Registration
) -> Endpoint:
    """Registers an endpoint. Raises InvalidRequest, NameTaken, and the 422s of what it refers to."""
    settings = await _settings(setup, namespace, wanted)
    try:
        created = await endpoints.create(namespace, name, uuid.uuid4(), wanted.endpoint_type, settings)
    except ReferencesMissing as error:
        raise _missing(error.missing[0]) from error
    if not created:
        raise NameTaken(f"name: an endpoint '{name}' exists already", field="name")
    return await find_endpoint(endpoints, namespace, name)


async def update_endpoint(
    endpoints: EndpointStore,
    setup: SetupStore,
    hints: DispatcherHints,
    namespace: str,
    name: str,
    wanted: Registration,
) -> Endpoint:
    """Writes the next revision, and limits that apply to what waits already. Raises EndpointNotFound and what
    create_endpoint raises."""
    settings = await _settings(setup, namespace, wanted)
    try:
        updated = await endpoints.update(namespace, name, wanted.endpoint_type, settings)
    except ReferencesMissing as error:
        raise _missing(error.missing[0]) from error
    if not updated:
        raise EndpointNotFound.named(name)
    endpoint = await find_endpoint(endpoints, namespace, name)
    hints.wake([endpoint.endpoint_id])  # wider limits let go what narrower ones held back
    return endpoint


async def delete_endpoint(endpoints: EndpointStore, namespace: str, name: str) -> None:
    """Hides an endpoint without live jobs. Raises EndpointNotFound, Conflict."""
    existed, live = await endpoints.delete(namespace, name)
    if not existed:
        raise EndpointNotFound.named(name)
    if live:
        raise Conflict(f"endpoint '{name}' has live jobs, {', '.join(job_id_text(job) for job in live)} among them")


async def _settings(setup: SetupStore, namespace: str, wanted: Registration) -> EndpointSettings:
    compiled = kind_of(wanted.endpoint_type).compile(wanted.spec)
    references = _references(wanted, compiled)
    await _check_config_paths(setup, namespace, wanted.config, compiled)
    return EndpointSettings(
        payload_spec=wanted.payload_spec,
        config=wanted.config,
        spec=wanted.spec,
        retry_policy=wanted.retry_policy,
        timeout_ms=compiled.timeout_ms,
        references=references,
        flow_control=wanted.flow_control,
    )


def _references(wanted: Registration, compiled: CompiledSpec) -> list[Reference]:
    found: dict[Reference, None] = {}
    if wanted.payload_spec is not None:
        found[Reference(ReferenceKind.PAYLOAD_SPEC, wanted.payload_spec)] = None
    if wanted.config is not None:
        found[Reference(ReferenceKind.CONFIG, wanted.config)] = None
    for placeholder in compiled.placeholders:
        if placeholder.namespace == "secret":
            found[Reference(ReferenceKind.SECRET, placeholder.path[0])] = None
        elif placeholder.namespace == "config" and wanted.config is not None:
            found[Reference(ReferenceKind.CONFIG, wanted.config, ".".join(placeholder.path))] = None
    return list(found)


async def _check_config_paths(setup: SetupStore, namespace: str, config: str | None, compiled: CompiledSpec) -> None:
    """Refuses templates that name config values which are not there.

    A config may change between this look and the registration; then the delivery says what is missing.
    """
    placeholders = [placeholder for placeholder in compiled.placeholders if placeholder.namespace == "config"]
    if config is None:
        if placeholders:
            raise TemplateResolutionFailed(f"{_shown(placeholders[0])}: the endpoint names no config", field="config")
        return
    stored = await setup.get_config(namespace, config)
    if stored is None:
        raise _missing(Reference(ReferenceKind.CONFIG, config))
    scope: Mapping[str, Any] = {"config": stored.values_json}
    for placeholder in placeholders:
        try:
            placeholder.resolve(scope)
        except TemplateError as error:
            raise TemplateResolutionFailed(f"{error} (config '{config}')", field="spec") from error


def _shown(placeholder: Placeholder) -> str:
    return f"{{{{{placeholder.text}}}}}"


def _missing(reference: Reference) -> TaskExecutorError:
    if reference.kind is ReferenceKind.PAYLOAD_SPEC:
        return InvalidPayloadSpecRef(f"payload_spec: there is no payload spec '{reference.name}'", field="payload_spec")
    if reference.kind is ReferenceKind.CONFIG:
        return InvalidConfigRef(f"config: there is no config '{reference.name}'", field="config")
    return TemplateResolutionFailed(f"{{{{secret.{reference.name}}}}}: there is no such secret", field="spec")


def checked_type(endpoint: Endpoint, wanted: EndpointType | None) -> EndpointType:
    """The type of an update: left out or the same. Raises InvalidRequest."""
    if wanted is not None and wanted is not endpoint.endpoint_type:
        raise InvalidRequest(f"type: an endpoint keeps its type, here {endpoint.endpoint_type}", field="type")
    return endpoint.endpoint_type
