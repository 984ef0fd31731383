"""The document as it is committed, and as the contract and the generator make it now."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import yaml

from tools.gen import write_descriptor
from tools.openapi.contract import Contract

COMMITTED = pathlib.Path(__file__).resolve().parents[3] / "docs/openapi.yaml"


@pytest.fixture(scope="package")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Contract:
    descriptor = tmp_path_factory.mktemp("openapi") / "described.binpb"
    write_descriptor(descriptor, source_info=True)
    return Contract.parse(descriptor.read_bytes())


@pytest.fixture(scope="package")
def document() -> dict[str, Any]:
    return dict(yaml.safe_load(COMMITTED.read_text(encoding="utf-8")))
