"""Secrets move to a new key while the old one still decrypts, and not one is lost on the way."""

from __future__ import annotations

import pytest

from taskexecutor_common.crypto import DecryptionFailed, KeyRing, generate_entry
from taskexecutor_common.store.setup import SetupStore
from tests.support.engine import Engine

SECRETS = 250  # more than a page


async def stored(setup: SetupStore, keys: KeyRing, name: str) -> str:
    secret = await setup.get_encrypted_secret("default", name)
    assert secret is not None
    return keys.decrypt(secret.key_id, secret.encrypted_value, namespace="default", name=name)


async def test_all_secrets_are_encrypted_under_the_newest_key_and_the_old_one_may_go(engine: Engine) -> None:
    old_entry, new_entry = generate_entry(), generate_entry()
    old = KeyRing.parse(old_entry)
    for number in range(SECRETS):
        name = f"secret-{number}"
        key_id, encrypted = old.encrypt(f"value-{number}", namespace="default", name=name)
        assert await engine.setup.create_secret("default", name, key_id, encrypted)

    both, new = KeyRing.parse(f"{new_entry},{old_entry}"), KeyRing.parse(new_entry)
    assert await engine.setup.reencrypt_secrets(both) == SECRETS
    assert await engine.setup.reencrypt_secrets(both) == 0
    for number in range(SECRETS):
        assert await stored(engine.setup, new, f"secret-{number}") == f"value-{number}"


async def test_without_the_old_key_nothing_is_changed(engine: Engine) -> None:
    old, new = KeyRing.parse(generate_entry()), KeyRing.parse(generate_entry())
    key_id, encrypted = old.encrypt("value", namespace="default", name="one")
    await engine.setup.create_secret("default", "one", key_id, encrypted)
    with pytest.raises(DecryptionFailed):
        await engine.setup.reencrypt_secrets(new)
    assert await stored(engine.setup, old, "one") == "value"
