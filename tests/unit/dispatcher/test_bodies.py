"""In which form bodies are kept."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_dispatcher.endpoints.bodies import Body, named_charset


def test_a_cut_through_a_character_drops_that_character() -> None:
    assert Body("aé".encode()[:2], truncated=True).to_json() == {"body": "a", "truncated": True}


def test_a_cut_through_a_group_of_base64_drops_that_group() -> None:
    assert Body(b"\0\1\2\3", truncated=True).to_json()["body"] == "AAEC"
    assert Body(b"\0\1\2\3").to_json()["body"] == "AAECAw=="


def test_a_character_that_is_cut_in_a_whole_body_is_no_text() -> None:
    assert Body("aé".encode()[:2]).to_json()["body_encoding"] == "base64"


@pytest.mark.parametrize(
    "charset", ["unicode_escape", "idna", "punycode", "utf-7", "zlib", "no-such-charset", "", None]
)
def test_a_charset_that_is_none_counts_as_utf_8(charset: str | None) -> None:
    assert Body("é\\x41+AGE-".encode(), charset=charset).to_json() == {"body": "é\\x41+AGE-"}


@pytest.mark.parametrize(
    ("content_type", "charset"),
    [
        ("text/html; charset=utf-8", "utf-8"),
        ('text/html;x=y; Charset = "ISO-8859-1"', "iso-8859-1"),
        ("text/html", None),
        ("text/html; charset=", None),
        ("", None),
        (";utf-8*", None),
    ],
)
def test_the_charset_is_the_one_that_the_content_type_names(content_type: str, charset: str | None) -> None:
    assert named_charset(content_type) == charset


@given(st.text())
def test_no_content_type_is_too_odd(content_type: str) -> None:
    named_charset(content_type)


def test_text_with_a_nul_is_kept_as_base64() -> None:
    assert Body(b"a\0b").to_json() == {"body": base64.b64encode(b"a\0b").decode(), "body_encoding": "base64"}


@given(st.binary(), st.booleans(), st.sampled_from([None, "utf-8", "utf-16", "gb18030", "iso-2022-jp", "shift_jis"]))
def test_every_body_becomes_json_that_postgresql_stores(kept: bytes, truncated: bool, charset: str | None) -> None:
    body = Body(kept, truncated=truncated, charset=charset).to_json()["body"]
    assert "\0" not in body
    assert body.encode().decode() == body
