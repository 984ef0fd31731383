"""The form of API keys, `te_<id>_<secret>` in hex, and how their secrets are hashed and compared."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

_FORM = re.compile(r"te_([0-9a-f]{4,64})_([0-9a-f]{8,128})")


@dataclass(frozen=True, slots=True, repr=False)
class ParsedKey:
    """A key as a caller sends it."""

    key_id: str
    secret: str

    @property
    def secret_hash(self) -> bytes:
        """What is stored. A plain SHA-256 is right: the secret is random, there is nothing to guess slowly."""
        return hashlib.sha256(self.secret.encode()).digest()

    def matches(self, stored_hash: bytes) -> bool:
        """Compares in constant time."""
        return hmac.compare_digest(self.secret_hash, stored_hash)


def parse_key(text: str) -> ParsedKey | None:
    """Reads a key; None when it has not the form of one."""
    match = _FORM.fullmatch(text)
    return ParsedKey(match[1], match[2]) if match else None


def generate_key() -> str:
    """A new key."""
    return f"te_{secrets.token_hex(8)}_{secrets.token_hex(24)}"
