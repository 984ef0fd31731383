"""What a Kafka delivery says when it failed, and whether another attempt may do better."""

from __future__ import annotations

import socket

from confluent_kafka import KafkaError

from taskexecutor_common.egress import AddressRefused
from taskexecutor_dispatcher.endpoints.base import DeliveryError, Outcome

_TIMEOUTS = frozenset(
    {
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
_UNKNOWN_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
_PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._DESTROY})

# What the protocol's table of errors calls not retriable, as far as a producer can meet it:
# https://kafka.apache.org/protocol#protocol_error_codes
_LASTING = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_REQUIRED_ACKS,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.INVALID_RECORD,
        KafkaError.POLICY_VIOLATION,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
    }
)


def invalid_destination(message: str) -> Outcome:
    """The record cannot be produced as it is, now or later."""
    return Outcome(error=DeliveryError("INVALID_DESTINATION", message), retryable=False)


def broker_error(message: str, *, retryable: bool = True) -> Outcome:
    """The brokers did not take the record, or it never came to them."""
    return Outcome(error=DeliveryError("BROKER_ERROR", message), retryable=retryable)


def timed_out(what_is_missing: str, timeout_ms: int) -> Outcome:
    """The attempt's time was up."""
    return Outcome(error=DeliveryError("TIMEOUT", f"{what_is_missing} within {timeout_ms} ms."))


def is_timeout(error: KafkaError) -> bool:
    """True when no broker confirmed in time."""
    return error.code() in _TIMEOUTS


def names_unknown_topic(error: KafkaError) -> bool:
    """True when the topic is not there."""
    return error.code() in _UNKNOWN_TOPIC


def not_produced(error: KafkaError, topic: str, timeout_ms: int) -> Outcome:
    """The outcome for what librdkafka or a broker said about a record or its topic."""
    code = error.code()
    if is_timeout(error):
        return timed_out("No broker confirmed the record", timeout_ms)
    if names_unknown_topic(error):
        return broker_error(f"The topic '{topic}' does not exist, say the brokers.")
    if code == KafkaError.TOPIC_EXCEPTION:
        return invalid_destination(f"The brokers refuse '{topic}' as the name of a topic.")
    if code in _PURGED:
        return broker_error("The producer was closed before a broker confirmed the record.")
    return broker_error(f"{_text(code)}.", retryable=code not in _LASTING)


def not_reached(failure: OSError) -> Outcome:
    """The outcome for brokers that could not be resolved, or may not be reached."""
    if isinstance(failure, AddressRefused):
        return Outcome(error=DeliveryError("ADDRESS_REFUSED", f"{failure}."), retryable=False)
    reason = f": {failure.strerror}" if isinstance(failure, socket.gaierror) and failure.strerror else ""
    return broker_error(f"No bootstrap server could be resolved{reason}.")


def _text(code: int) -> str:
    """librdkafka's standing text for an error. What an error itself says may name brokers, which may be secrets."""
    return KafkaError(code).str().rstrip(".")
