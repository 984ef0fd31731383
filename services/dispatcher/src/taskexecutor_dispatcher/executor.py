"""Delivers one claimed execution: resolve, render, send, judge."""

from __future__ import annotations

import asyncio
import functools
import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from prometheus_client import Counter, Histogram

from taskexecutor_common.backoff import retry_delay_ms
from taskexecutor_common.clock import Clock, rfc3339
from taskexecutor_common.crypto import DecryptionFailed
from taskexecutor_common.endpoint_types.base import DeliveryIdentity, InvalidDestination
from taskexecutor_common.errors import TaskExecutorError, Unavailable
from taskexecutor_common.ids import execution_id_text, job_id_text
from taskexecutor_common.masking import CUT, Mask
from taskexecutor_common.model.endpoint import EndpointType, RetryPolicy
from taskexecutor_common.model.execution import AttemptResult, Claim
from taskexecutor_common.model.state import AttemptStatus, ExecutionStatus, LogLevel
from taskexecutor_common.observability import metrics
from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.templates import TemplateError
from taskexecutor_dispatcher.endpoints.base import DeliveryError, Outcome, Transport
from taskexecutor_dispatcher.revisions import Revision, Revisions, Unresolvable

_log = get_logger("executor")

# Statuses whose Retry-After speaks of the receiver as a whole (RFC 6585, section 4; RFC 9110, 15.6.4).
_ASKS_FOR_REST = (429, 503)
_MOST_UNCOUNTED_ATTEMPTS = 100

INTERRUPTED = Outcome(
    error=DeliveryError(
        "WORKER_LOST", "the dispatcher was shut down before the answer came; whether the delivery was made is not known"
    )
)

LEFT = Outcome(error=DeliveryError("WORKER_LOST", "the dispatcher was shut down"), was_begun=False)

# It may be somebody else's by now; if it is not, recording this hands it on.
FENCED = Outcome(
    error=DeliveryError(
        "WORKER_LOST", "the dispatcher had lost the database, and could not know whether it still held this"
    ),
    was_begun=False,
)

# The database was away, which is no fault of the job's.
UNREADABLE = Outcome(
    error=DeliveryError("INTERNAL_ERROR", "what the delivery needs could not be read"), was_begun=False
)


class Executor:
    """Runs deliveries; each ends in a result for the completer, whatever happens.

    `is_fenced` says that this instance may be believed dead: then nothing is sent.
    """

    def __init__(
        self,
        revisions: Revisions,
        transports: Mapping[EndpointType, Transport[Any]],
        put: Callable[[AttemptResult], None],
        is_fenced: Callable[[], bool],
        clock: Clock,
    ) -> None:
        self._revisions = revisions
        self._transports = transports
        self._put = put
        self._is_fenced = is_fenced
        self._clock = clock

    async def deliver(self, claim: Claim, send_at: float | None = None) -> None:
        """One attempt, from claim to result; nothing is sent before `send_at`, by the monotonic clock.

        Cancelling it is how a shutdown ends waiting: that is a result too.
        """
        started = time.perf_counter()
        try:
            revision = await self._revisions.endpoints.get((claim.queue, claim.endpoint_revision))
            if send_at is not None:
                await _until(send_at)
                started = time.perf_counter()
                if claim.attempt_count == 1:
                    metrics.LATENESS.observe(time.monotonic() - send_at)
        except asyncio.CancelledError:
            self._put(self._result(claim, RetryPolicy(), LEFT, 0))
            return
        except Exception as error:
            self._give_up(claim, error)
            return
        outcome = await self._attempt(claim, revision)
        elapsed = time.perf_counter() - started
        _count_attempt(revision.endpoint_type, outcome, elapsed)
        self._put(self._result(claim, revision.retry_policy, outcome, round(elapsed * 1000)))

    async def send_once(
        self,
        *,
        endpoint_id: UUID,
        revision: int,
        namespace: str,
        config_revision_id: UUID | None,
        value: dict[str, Any],
    ) -> Outcome:
        """One delivery outside any job: it is sent and judged like an attempt, under an id of its own, and not recorded."""
        claim = Claim(
            execution_id=uuid4(),
            job_id=UUID(int=0),
            namespace=namespace,
            queue=endpoint_id,
            endpoint_revision=revision,
            config_revision_id=config_revision_id,
            attempt_count=1,
            max_attempts=1,
            scheduled_at=self._clock.now(),
            claimed_at_ms=0,
            ready_at_ms=0,
            late_ms=0,
            job_version=1,
            input=value,
        )
        outcome = await self._attempt(claim, await self._revisions.endpoints.get((endpoint_id, revision)))
        if outcome is FENCED:
            raise Unavailable("this dispatcher cannot reach the database", retry_after=5)
        return outcome

    async def _attempt(self, claim: Claim, revision: Revision) -> Outcome:
        """Resolves, renders and sends."""
        identity = DeliveryIdentity(
            execution_id=execution_id_text(claim.execution_id),
            job_id=job_id_text(claim.job_id),
            attempt=claim.attempt_count,
            scheduled_at=rfc3339(claim.scheduled_at),
        )
        try:
            secrets = await self._read_secrets(claim.namespace, revision) if revision.secrets else {}
            request = revision.spec.render(await self._scope(claim, identity, secrets))
            if self._is_fenced():
                _log.warning("fenced: not sent", execution_id=identity.execution_id, attempt=identity.attempt)
                return FENCED
            outcome = await self._transports[revision.endpoint_type].deliver(
                request, identity, revision.spec.timeout_ms
            )
            return _masked(outcome, Mask(secrets.values())) if secrets else outcome
        except asyncio.CancelledError:
            return INTERRUPTED
        except (TemplateError, Unresolvable, DecryptionFailed) as error:
            return Outcome(error=DeliveryError("TEMPLATE_RESOLUTION_FAILED", str(error)), retryable=False)
        except InvalidDestination as error:
            return Outcome(error=DeliveryError("INVALID_DESTINATION", str(error)), retryable=False)
        except TaskExecutorError as error:
            _log.warning("cannot prepare", execution_id=identity.execution_id, error=error.message)
            return UNREADABLE
        except Exception:
            _log.exception("delivery failed in our own code", execution_id=identity.execution_id)
            return Outcome(error=DeliveryError("INTERNAL_ERROR", "the delivery failed inside the dispatcher"))

    def _give_up(self, claim: Claim, error: Exception) -> None:
        """Without its endpoint revision nothing can be sent."""
        _log.warning("endpoint revision unreadable", execution_id=execution_id_text(claim.execution_id), exc_info=error)
        broken = DeliveryError("INTERNAL_ERROR", "the endpoint's settings cannot be used")
        outcome = UNREADABLE if isinstance(error, TaskExecutorError) else Outcome(error=broken, retryable=False)
        self._put(self._result(claim, RetryPolicy(), outcome, 0))

    async def _read_secrets(self, namespace: str, revision: Revision) -> dict[str, str]:
        return {name: await self._revisions.secrets.get((namespace, name)) for name in revision.secrets}

    async def _scope(self, claim: Claim, identity: DeliveryIdentity, secrets: dict[str, str]) -> dict[str, Any]:
        config: dict[str, Any] = {}
        if claim.config_revision_id is not None:
            config = await self._revisions.configs.get(claim.config_revision_id)
        return identity.scope(value=claim.input or {}, config=config, secrets=secrets, job_version=claim.job_version)

    def _result(self, claim: Claim, policy: RetryPolicy, outcome: Outcome, duration_ms: int) -> AttemptResult:
        """What follows from an outcome: success, another attempt, or the end."""
        delay = 0
        close_ms = _rest_ms(claim, policy, outcome)
        is_counted = close_ms is None and (outcome.was_begun or not _has_patience(claim, policy))
        if outcome.succeeded:
            next_status = ExecutionStatus.SUCCESS
        elif close_ms is not None:
            next_status, delay = ExecutionStatus.RETRYING, close_ms
        elif not is_counted or _may_retry(claim, policy, outcome):
            next_status = ExecutionStatus.RETRYING
            if outcome not in (INTERRUPTED, LEFT):
                # What did not count makes later pauses no longer; what does not count now may last, and its pauses grow.
                attempt = claim.attempt_count - (_uncounted(claim, policy) if is_counted else 0)
                delay = retry_delay_ms(policy, attempt, outcome.retry_after_ms, random.random)
        else:
            next_status = ExecutionStatus.FAILED
        level, message = _log_row(claim, outcome, next_status, delay, is_counted=is_counted)
        return AttemptResult(
            execution_id=claim.execution_id,
            attempt_number=claim.attempt_count,
            attempt_status=AttemptStatus.SUCCESS if outcome.succeeded else AttemptStatus.FAILED,
            next_status=next_status,
            retry_delay_ms=delay,
            duration_ms=duration_ms,
            output=outcome.output,
            error=outcome.error.to_json() if outcome.error else None,
            log_level=level,
            log_message=message,
            is_receivers_fault=close_ms is None and outcome.is_receivers_fault,
            close_ms=close_ms,
            is_counted=is_counted,
        )


async def _until(moment: float) -> None:
    # Timers of uvloop have milliseconds, and may be up to one early.
    while (rest := moment - time.monotonic()) > 0:  # noqa: ASYNC110  # there is no event but time itself
        await asyncio.sleep(math.ceil(rest * 1000) / 1000)


def _count_attempt(endpoint_type: EndpointType, outcome: Outcome, elapsed_sec: float) -> None:
    _seconds_of(endpoint_type).observe(elapsed_sec)
    _attempts_of(endpoint_type, outcome.error.type if outcome.error else "SUCCESS").inc()


# Looking a label up costs more than counting; both sets of labels are small.
@functools.cache
def _seconds_of(endpoint_type: EndpointType) -> Histogram:
    return metrics.ATTEMPT_SECONDS.labels(endpoint_type=endpoint_type.value)


@functools.cache
def _attempts_of(endpoint_type: EndpointType, outcome: str) -> Counter:
    return metrics.ATTEMPTS.labels(endpoint_type=endpoint_type.value, outcome=outcome)


def _may_retry(claim: Claim, policy: RetryPolicy, outcome: Outcome) -> bool:
    if not outcome.retryable or claim.attempt_count >= claim.max_attempts:
        return False
    status = outcome.error.status_code if outcome.error else None
    return status is None or status not in policy.non_retryable_status_codes


def _rest_ms(claim: Claim, policy: RetryPolicy, outcome: Outcome) -> int | None:
    """How long the receiver wants nothing from anybody, bounded by the policy; None when it did not say so.

    Such an answer costs no attempt: it speaks of the receiver's load and not of this delivery. Not for ever, though.
    """
    if not outcome.retry_after_ms or outcome.error is None or outcome.error.status_code not in _ASKS_FOR_REST:
        return None
    if outcome.error.status_code in policy.non_retryable_status_codes:
        return None
    return min(outcome.retry_after_ms, policy.max_delay_ms) or None if _has_patience(claim, policy) else None


def _has_patience(claim: Claim, policy: RetryPolicy) -> bool:
    """Whether an attempt may yet be left uncounted."""
    return _uncounted(claim, policy) < _MOST_UNCOUNTED_ATTEMPTS


def _uncounted(claim: Claim, policy: RetryPolicy) -> int:
    """How many attempts did not count; each has made `max_attempts` grow."""
    return max(0, claim.max_attempts - policy.max_attempts)


def _masked(outcome: Outcome, mask: Mask) -> Outcome:
    error, output = outcome.error, outcome.output
    if error is not None:
        is_cut = error.message.endswith(CUT)
        message = mask.text(error.message.removesuffix(CUT), is_cut=is_cut) + CUT * is_cut
        error = replace(error, message=message)
    if output is not None:
        output = mask.value(output)
        if output.get("truncated"):
            output["body"] = mask.text(output["body"], is_cut=True)
    return replace(outcome, output=output, error=error)


def _log_row(
    claim: Claim, outcome: Outcome, next_status: ExecutionStatus, delay_ms: int, *, is_counted: bool
) -> tuple[LogLevel | None, str | None]:
    """The log row of a failed attempt: what was answered and what follows. A success needs none."""
    error = outcome.error
    if error is None:
        return None, None
    what = f"{error.type} {error.status_code}" if error.status_code is not None else error.type
    said = f"attempt {claim.attempt_count} of {claim.max_attempts} failed: {what}: {error.message.rstrip('.')}"
    pause = f"{delay_ms / 1000:.3f} s"
    if not (outcome.was_begun or is_counted):
        return LogLevel.WARN, f"{said}; nothing was sent, this attempt does not count, and the next follows in {pause}"
    if not is_counted:
        return LogLevel.WARN, f"{said}; the receiver asks for a rest of {pause}, and this attempt does not count"
    if next_status is ExecutionStatus.RETRYING:
        return LogLevel.WARN, f"{said}; the next attempt follows in {pause}"
    reason = "no attempts are left" if outcome.retryable else "this is not retried"
    if claim.attempt_count < claim.max_attempts and outcome.retryable:
        reason = "the retry policy does not retry this status"
    return LogLevel.ERROR, f"{said}; {reason}"
