"""docs/guarantees.md promises nothing that no test holds."""

from __future__ import annotations

import re

from tests.contract.deploy.files import ROOT, text
from tests.contract.test_brief import REFERENCE, names_in

PAGE = text("docs/guarantees.md")
PROMISE = re.compile(r"^\| (?!promise |---)(.+?) \|(.*)\| (.+) \|$", re.MULTILINE)
FILE = re.compile(r"`(tests/[\w/]+(?:\.py)?)`")


def test_every_test_that_the_page_names_exists() -> None:
    named = REFERENCE.findall(PAGE)
    assert len(named) > 20
    assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == []
    assert [path for path in FILE.findall(PAGE) if not (ROOT / path).exists()] == []


def test_every_promise_names_what_holds_it() -> None:
    promises = PROMISE.findall(PAGE.partition("## What was broken")[0])
    assert len(promises) > 25
    assert [
        promise
        for promise, _, held_by in promises
        if not REFERENCE.search(held_by) and not FILE.search(held_by) and "the audit" not in held_by
    ] == []
