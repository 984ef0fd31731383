"""JSON as strangers write it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
"""Any text that UTF-8 can carry."""
numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)


def json_of(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[str] = texts) -> st.SearchStrategy[Any]:
    """JSON values with these leaves."""
    return st.recursive(
        leaves,
        lambda children: st.lists(children, max_size=4) | st.dictionaries(keys, children, max_size=4),
        max_leaves=10,
    )


plain_values = json_of(st.none() | st.booleans() | numbers | texts)
"""What passes the api: finite numbers, exact integers, no lone surrogates."""
