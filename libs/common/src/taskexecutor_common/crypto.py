"""Secrets at rest: AES-256-GCM under a ring of keys, each ciphertext bound to the namespace and name it belongs to.

A ring is written as `id:key,id:key,...`. A key is 32 random bytes in base64, an id 1-32 of `A-Z a-z 0-9 . _ -`; a key
without an id gets one that is derived from it. The first key encrypts, all decrypt: to rotate, put the new key first,
and take the old one out once everything is encrypted anew.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_KEY_BYTES = 32
_NONCE_BYTES = 12
_ID = re.compile(r"[A-Za-z0-9._-]{1,32}")
_PURPOSE = b"taskexecutor secret v1"
_LENGTH_BYTES = 4


class DecryptionFailed(Exception):
    """The ciphertext cannot be read: its key is not in the ring, it was tampered with, or it belongs elsewhere."""


class KeyRing:
    """Encrypts under its first key and decrypts under all of them. Its repr shows ids only."""

    def __init__(self, keys: dict[str, bytes]) -> None:
        """`keys` by id, 32 bytes each, the encrypting one first; ValueError if there is none."""
        if not keys:
            raise ValueError("a key ring needs at least one key")
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}
        self.primary_id = next(iter(keys))

    @classmethod
    def parse(cls, text: str) -> KeyRing:
        """Reads the written form. A ValueError names the entry at fault by its position: it may be key all through."""
        keys: dict[str, bytes] = {}
        for position, entry in enumerate(text.split(","), start=1):
            key_id, key = _parse_entry(entry.strip(), position)
            if key_id in keys:
                raise ValueError(f"entry {position} has the id of an earlier one; ids must differ")
            keys[key_id] = key
        return cls(keys)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all keys, the encrypting one first."""
        return tuple(self._ciphers)

    def encrypt(self, plaintext: str, *, namespace: str, name: str) -> tuple[str, bytes]:
        """The id of the key that was used, and nonce + ciphertext + tag. The same text never looks the same twice."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._ciphers[self.primary_id].encrypt(nonce, plaintext.encode(), _binding(namespace, name))
        return self.primary_id, nonce + sealed

    def decrypt(self, key_id: str, ciphertext: bytes, *, namespace: str, name: str) -> str:
        """What `encrypt` was given for the same namespace and name; DecryptionFailed for everything else."""
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise DecryptionFailed(f"no key of the ring has the id {key_id[:32]!r}")
        nonce, sealed = ciphertext[:_NONCE_BYTES], ciphertext[_NONCE_BYTES:]
        try:
            return cipher.decrypt(nonce, sealed, _binding(namespace, name)).decode()
        except (InvalidTag, ValueError):  # ValueError: cut short
            # Without the cause: a traceback has no business in what was being decrypted.
            raise DecryptionFailed("the ciphertext is damaged, or belongs to another secret") from None

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self.ids)})"


def generate_entry() -> str:
    """A new `id:key` entry for a ring."""
    key = secrets.token_bytes(_KEY_BYTES)
    return f"{_derived_id(key)}:{base64.b64encode(key).decode()}"


def _parse_entry(entry: str, position: int) -> tuple[str, bytes]:
    key_id, colon, encoded = entry.rpartition(":")
    if colon and not _ID.fullmatch(key_id):
        raise ValueError(f"entry {position}: what stands before the colon is no id (1-32 of A-Z a-z 0-9 . _ -)")
    key = _decode_key(encoded)
    if key is None:
        raise ValueError(f"entry {position}: the key is not {_KEY_BYTES} bytes in base64 (44 characters)")
    return (key_id if colon else _derived_id(key)), key


def _decode_key(encoded: str) -> bytes | None:
    """The key, in either alphabet of base64, or None if it is none."""
    try:
        key = base64.b64decode(encoded.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):  # ValueError: not ASCII
        return None
    return key if len(key) == _KEY_BYTES else None


def _derived_id(key: bytes) -> str:
    """An id that tells keys apart and says nothing about them."""
    return "k" + hashlib.sha256(b"taskexecutor key id" + key).hexdigest()[:12]


def _binding(namespace: str, name: str) -> bytes:
    """What a ciphertext is bound to. Lengths go first, so that no two pairs read the same."""
    parts = (namespace.encode(), name.encode())
    return _PURPOSE + b"".join(len(part).to_bytes(_LENGTH_BYTES, "big") + part for part in parts)
