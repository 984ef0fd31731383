"""Where the benchmark keeps its things."""

from __future__ import annotations

import pathlib

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent
CACHE = HERE / ".cache"
"""Environments of the peers, a fetched nginx, and the data of the run under way."""
RESULTS = HERE / "results"
PARTIAL_RESULTS = CACHE / "results"
"""Of quick runs and single scenarios."""
PAGE = ROOT / "docs" / "performance.md"
PICTURES = ROOT / "docs" / "images"
