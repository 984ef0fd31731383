"""Crypto: what a key ring opens, what it refuses, and that it never shows a key or a secret."""

from __future__ import annotations

import base64
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_common.crypto import DecryptionFailed, KeyRing, generate_entry

OLD = "old:" + base64.b64encode(bytes(range(32))).decode()
NEW = "new:" + base64.b64encode(bytes(range(100, 132))).decode()
BARE = base64.b64encode(bytes(range(200, 232))).decode()


def ring(*entries: str) -> KeyRing:
    return KeyRing.parse(",".join(entries))


def test_the_first_key_encrypts() -> None:
    assert ring(NEW, OLD).encrypt("s3cret", namespace="shop", name="token")[0] == "new"
    assert ring(OLD, NEW).primary_id == "old"


def test_every_key_decrypts() -> None:
    key_id, sealed = ring(OLD).encrypt("s3cret", namespace="shop", name="token")
    assert ring(NEW, OLD).decrypt(key_id, sealed, namespace="shop", name="token") == "s3cret"


@given(plaintext=st.text(), namespace=st.text(), name=st.text())
def test_what_went_in_comes_out(plaintext: str, namespace: str, name: str) -> None:
    keys = ring(OLD)
    key_id, sealed = keys.encrypt(plaintext, namespace=namespace, name=name)
    assert keys.decrypt(key_id, sealed, namespace=namespace, name=name) == plaintext


def test_the_same_text_looks_different_each_time() -> None:
    keys = ring(OLD)
    sealed = {keys.encrypt("s3cret", namespace="shop", name="token")[1] for _ in range(20)}
    assert len({text[:12] for text in sealed}) == 20
    assert len({text[12:] for text in sealed}) == 20


def test_a_key_that_left_the_ring_opens_nothing() -> None:
    key_id, sealed = ring(OLD).encrypt("s3cret", namespace="shop", name="token")
    with pytest.raises(DecryptionFailed, match="id 'old'"):
        ring(NEW).decrypt(key_id, sealed, namespace="shop", name="token")


def test_another_key_of_the_same_id_opens_nothing() -> None:
    _, sealed = ring("k:" + NEW.split(":")[1]).encrypt("s3cret", namespace="shop", name="token")
    with pytest.raises(DecryptionFailed):
        ring("k:" + OLD.split(":")[1]).decrypt("k", sealed, namespace="shop", name="token")


@pytest.mark.parametrize("position", [0, 11, 12, 17, -1])
def test_one_flipped_bit_is_noticed(position: int) -> None:
    keys = ring(OLD)
    key_id, sealed = keys.encrypt("s3cret", namespace="shop", name="token")
    damaged = bytearray(sealed)
    damaged[position] ^= 1
    with pytest.raises(DecryptionFailed):
        keys.decrypt(key_id, bytes(damaged), namespace="shop", name="token")


@pytest.mark.parametrize("length", [0, 1, 11, 12, 20, 27, 33])
def test_a_cut_ciphertext_is_noticed(length: int) -> None:
    keys = ring(OLD)
    key_id, sealed = keys.encrypt("s3cret", namespace="shop", name="token")
    with pytest.raises(DecryptionFailed):
        keys.decrypt(key_id, sealed[:length], namespace="shop", name="token")


@pytest.mark.parametrize(
    ("namespace", "name"),
    [("shop", "other"), ("other", "token"), ("token", "shop"), ("shopt", "oken"), ("", "shoptoken")],
)
def test_a_ciphertext_opens_only_where_it_belongs(namespace: str, name: str) -> None:
    keys = ring(OLD)
    key_id, sealed = keys.encrypt("s3cret", namespace="shop", name="token")
    with pytest.raises(DecryptionFailed):
        keys.decrypt(key_id, sealed, namespace=namespace, name=name)


# Reading rings


def test_a_bare_key_gets_a_stable_id_of_its_own() -> None:
    [key_id] = ring(BARE).ids
    assert ring(BARE).ids == (key_id,)
    assert key_id not in BARE
    assert ring(base64.b64encode(bytes(32)).decode()).ids != (key_id,)


def test_a_bare_key_may_be_given_its_id_later() -> None:
    [derived] = ring(BARE).ids
    key_id, sealed = ring(BARE).encrypt("s3cret", namespace="shop", name="token")
    assert ring(NEW, f"{derived}:{BARE}").decrypt(key_id, sealed, namespace="shop", name="token") == "s3cret"


def test_spaces_around_entries_and_both_base64_alphabets_are_read() -> None:
    key = b"\xfb\xff" * 16
    plain, url_safe = base64.b64encode(key).decode(), base64.urlsafe_b64encode(key).decode()
    assert plain != url_safe
    assert KeyRing.parse(f" a:{plain} , b:{url_safe} ").ids == ("a", "b")


def test_a_generated_entry_is_one_and_new() -> None:
    entries = {generate_entry() for _ in range(10)}
    assert len(entries) == 10
    assert len(KeyRing.parse(",".join(entries)).ids) == 10


SHORT = base64.b64encode(bytes(range(16))).decode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "entry 1: the key is not 32 bytes"),
        (f"{OLD},", "entry 2: the key is not 32 bytes"),
        (f"{OLD},k2:{SHORT}", "entry 2: the key is not 32 bytes"),
        (f"{BARE}x", "entry 1: the key"),
        (f"{BARE}:k1", "entry 1: what stands before the colon is no id"),
        (f"a b:{BARE}", "entry 1: what stands before the colon is no id"),
        (f":{BARE}", "entry 1: what stands before the colon is no id"),
        (f"{OLD},{OLD}", "entry 2 has the id of an earlier one"),
        (f"{BARE},{BARE}", "entry 2 has the id of an earlier one"),
        ("k1:pässword", "entry 1: the key"),
    ],
)
def test_a_bad_ring_is_refused_by_position_without_showing_it(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as raised:
        KeyRing.parse(text)
    shown = "".join(traceback.format_exception(raised.value, chain=True)).split("Error: ")[-1]
    for part in (BARE, SHORT, OLD.split(":")[1], "pässword"):
        assert part not in shown


def test_no_error_and_no_repr_shows_key_or_secret() -> None:
    keys = ring(NEW, OLD)
    key_id, sealed = keys.encrypt("s3cret", namespace="shop", name="token")
    with pytest.raises(DecryptionFailed) as raised:
        keys.decrypt(key_id, sealed, namespace="shop", name="other")
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
    assert repr(keys) == str(keys) == "KeyRing(new, old)"
    for secret in ("s3cret", NEW.split(":")[1], sealed.hex()):
        assert secret not in f"{raised.value!r} {keys!r} {vars(keys)}"
