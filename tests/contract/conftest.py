"""One migrated, empty database for all contracts that only read the catalog."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from tests.support.databases import Databases


@pytest.fixture(scope="package")
async def catalog(databases: Databases, migrated_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with (
        databases.copy(migrated_url) as url,
        await psycopg.AsyncConnection.connect(url, autocommit=True) as opened,
    ):
        yield opened
