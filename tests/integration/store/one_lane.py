"""For what is promised within a lane only: order, and what one statement over one lane does."""

from __future__ import annotations

import pytest

LANE = 0

in_one_lane = pytest.mark.parametrize("lanes", [1])
