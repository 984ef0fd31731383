"""The endpoint types there are: the one place that lists them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from taskexecutor_common.endpoint_types.base import EndpointKind
from taskexecutor_common.endpoint_types.http import HttpKind
from taskexecutor_common.endpoint_types.kafka import KafkaKind
from taskexecutor_common.endpoint_types.redis_stream import RedisStreamKind
from taskexecutor_common.model.endpoint import EndpointType

_ALL: tuple[EndpointKind, ...] = (HttpKind(), KafkaKind(), RedisStreamKind())

KINDS: Mapping[EndpointType, EndpointKind] = MappingProxyType({kind.endpoint_type: kind for kind in _ALL})


def kind_of(endpoint_type: EndpointType) -> EndpointKind:
    """The shape of a type. Raises KeyError for a type that has none, which a test rules out."""
    return KINDS[endpoint_type]
