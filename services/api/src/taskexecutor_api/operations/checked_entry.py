"""Finding an endpoint for an input that its payload spec takes."""

from __future__ import annotations

from typing import Any

from taskexecutor_api.endpoint_catalog import EndpointCatalog, Entry
from taskexecutor_api.input_checks import InputChecks
from taskexecutor_common.errors import InputValidationFailed


async def checked_entry(
    catalog: EndpointCatalog, checks: InputChecks, namespace: str, name: str, value: dict[str, Any] | None
) -> Entry:
    """The endpoint, with the input held against its schema. Raises EndpointNotFound, InputValidationFailed.

    Nobody is refused by a schema that has been replaced: a refusal is told only after a look whether it still stands.
    """
    entry = await catalog.find(namespace, name)
    try:
        await checks.check(namespace, entry.schema, value)
    except InputValidationFailed:
        if await catalog.is_current(namespace, entry):
            raise
        catalog.forget(namespace, name)
        entry = await catalog.find(namespace, name)
        await checks.check(namespace, entry.schema, value)
    return entry
