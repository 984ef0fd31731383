"""The example printed at start: it works when pasted, as often as one likes."""

from __future__ import annotations

import sys

from taskexecutor_local.ports import free_ports, why_not_free
from taskexecutor_local.receiver import DEFAULT_PORT


def receiver_port() -> int:
    """The usual port of the example's receiver, or a free one where that is taken."""
    return free_ports(1)[0] if why_not_free(DEFAULT_PORT) else DEFAULT_PORT


def receiver_command(port: int) -> str:
    """Starts the receiver; works from any folder."""
    return f'"{sys.executable}" -m taskexecutor_local.receiver {port}'


def request_commands(url: str, key: str, port: int) -> str:
    """Creates an endpoint for the receiver (409 when it is there already), creates a job, reads its execution.

    `key` is pasted into double quotes, so it may be a shell variable.
    """
    endpoint = f"hello-{port}"
    return f"""\
API={url}; KEY="{key}"
curl -sSw '\\n' $API/endpoints -H "authorization: Bearer $KEY" -H 'content-type: application/json' -d '\
{{"name": "{endpoint}", "type": "HTTP", "spec": {{"url": "http://127.0.0.1:{port}/hello", "method": "POST", \
"body_template": {{"text": "{{{{input.text}}}}"}}}}}}'
JOB=$(curl -sS $API/jobs -H "authorization: Bearer $KEY" -H 'content-type: application/json' -d '{{"endpoint": \
"{endpoint}", "trigger": "IMMEDIATE", "idempotency_key": "hello-'$(date +%s)'", "input": {{"text": "it works"}}}}' \
| grep -o 'job_[0-9a-f]\\{{32\\}}' | head -n 1)
sleep 1; curl -sSw '\\n' $API/jobs/$JOB/executions -H "authorization: Bearer $KEY"
"""
