"""The checks that all endpoint specs share: known fields, right types, bounds, and messages that name the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from taskexecutor_common.errors import InvalidRequest
from taskexecutor_common.shortening import shortened


def _integral(value: Any) -> Any:
    """A Struct knows doubles only, so 5000 may arrive as 5000.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WholeNumber = Annotated[int, BeforeValidator(_integral)]
TimeoutMs = Annotated[WholeNumber, Field(ge=1, le=900_000)]
NonEmptyText = Annotated[str, Field(min_length=1)]


class Spec(BaseModel):
    """Base of the specs: unknown fields and wrong types are refused, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


SpecT = TypeVar("SpecT", bound=Spec)


def check_spec(model: type[SpecT], spec: Mapping[str, Any]) -> SpecT:
    """Reads a spec; null means absent. Raises InvalidRequest for the first field at fault."""
    try:
        return model.model_validate({name: value for name, value in spec.items() if value is not None})
    except ValidationError as error:
        raise _refusal(model, error) from None


def refused(field: str, fault: str) -> InvalidRequest:
    """The error for a field of a spec, with the field cut to a length that travels in headers."""
    field = shortened(field, 200)
    return InvalidRequest(f"{field}: {fault}", field=field)


def _refusal(model: type[Spec], error: ValidationError) -> InvalidRequest:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    match first["type"]:
        case "missing":
            fault = "is required"
        case "extra_forbidden":
            fault = f"is not known; the fields are {', '.join(model.model_fields)}"
        case _:
            fault = first["msg"].removeprefix("Input ")
    return refused(".".join(["spec", *map(str, first["loc"])]), fault)
