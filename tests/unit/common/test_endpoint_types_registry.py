"""Promises of the list of endpoint types."""

from __future__ import annotations

import pytest

from taskexecutor_common.endpoint_types.registry import KINDS, kind_of
from taskexecutor_common.errors import InvalidRequest
from taskexecutor_common.model.endpoint import EndpointType


def test_every_type_has_its_shape() -> None:
    assert set(KINDS) == set(EndpointType)
    assert all(kind_of(endpoint_type).endpoint_type is endpoint_type for endpoint_type in EndpointType)


@pytest.mark.parametrize("endpoint_type", EndpointType)
def test_every_type_refuses_an_empty_spec_naming_what_is_required(endpoint_type: EndpointType) -> None:
    with pytest.raises(InvalidRequest, match="is required"):
        kind_of(endpoint_type).compile({})
