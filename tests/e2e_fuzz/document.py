"""The committed document, and a copy of it that leads the fuzzer to things that exist.

The copy keeps every rule and only adds values to choose from: a stand-in for something that exists, which
`surface.py` replaces by the real thing at the moment of the call.
"""

from __future__ import annotations

import copy
import pathlib
from typing import Any

import yaml

Json = dict[str, Any]

PATH = pathlib.Path(__file__).resolve().parents[2] / "docs/openapi.yaml"

# Stand-ins: one for each kind of thing that a path can name.
FRESH = "stand-in-for-something-fresh"
FRESH_KEY_ID = "1" * 16
CRON_JOB, DELAYED_JOB, DONE_JOB, FAILED_JOB = (f"job_{digit * 32}" for digit in "1234")
WAITING_EXECUTION, DONE_EXECUTION, FAILED_EXECUTION = (f"exec_{digit * 32}" for digit in "234")

# What always exists, by these very names.
ENDPOINT, PAYLOAD_SPEC, CONFIG = "fuzz-endpoint", "fuzz-payload-spec", "fuzz-config"

_IN_PATHS = {
    "name": [FRESH],
    "key_id": [FRESH_KEY_ID],
    "job_id": [CRON_JOB, DELAYED_JOB, DONE_JOB, FAILED_JOB],
    "execution_id": [WAITING_EXECUTION, DONE_EXECUTION, FAILED_EXECUTION],
}
_IN_BODIES = {
    "endpoint": [ENDPOINT],
    "payload_spec": [PAYLOAD_SPEC],
    "config": [CONFIG],
    "cron": ["0 9 * * MON", "*/5 * * * *", "@daily"],
    "timezone": ["UTC", "Asia/Kolkata"],
    "url": ["http://receiver.example/hook", "http://receiver.example/{{input.user_id}}"],
}


def read() -> Json:
    """The document as it is committed."""
    return dict(yaml.safe_load(PATH.read_text(encoding="utf-8")))


def led_to_what_exists(document: Json) -> Json:
    """The copy."""
    led = copy.deepcopy(document)
    for item in led["paths"].values():
        for operation in item.values():
            for parameter in operation["parameters"]:
                if parameter.get("in") == "path":
                    parameter["schema"] = _one_of(_IN_PATHS[parameter["name"]], parameter["schema"])
    for name, schema in led["components"]["schemas"].items():
        if name.endswith(("Request", "Spec")):
            _lead(schema.get("properties", {}))
    return led


def _lead(properties: Json) -> None:
    for name in properties.keys() & _IN_BODIES.keys():
        properties[name] = _one_of(_IN_BODIES[name], properties[name])


def _one_of(values: list[str], schema: Json) -> Json:
    return {"anyOf": [{"type": "string", "enum": values}, schema]}
