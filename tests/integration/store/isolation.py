"""The two isolation levels at which what happens at once must come out right."""

from __future__ import annotations

import pytest

at_both_levels = pytest.mark.parametrize("isolation", ["read committed", "serializable"])
