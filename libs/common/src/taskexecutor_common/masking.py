"""Takes secrets out of whatever is kept or shown."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "***"
CUT = "…"
"""Ends a text of which the rest was cut off."""

_LEAST_BASE64_BYTES = 6  # what is shorter gives too few letters to be told from chance
_URL_SAFE = str.maketrans("+/", "-_")
_LEFT_IN_URLS = ("", "/", "!'()*")  # by strict encoders, by Python's, by JavaScript's
_ESCAPE = re.compile("%[0-9A-F]{2}")


class Mask:
    """Replaces secret values, and the ways they may be written, by `***` in any JSON value."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        # Longest first: a secret that contains another is replaced as a whole.
        self._forms = sorted(forms, key=len, reverse=True)

    def text(self, text: str, *, is_cut: bool = False) -> str:
        """The text without secrets. Where one has been cut off, so is the end that may be the beginning of a secret."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        if is_cut and (begun := max((_begun(form, text) for form in self._forms), default=0)):
            return text[:-begun]
        return text

    def value(self, value: Any) -> Any:
        """The value without secrets; object keys are looked at too."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and str(value) in self._forms:
            return MASK
        return value


def _begun(form: str, text: str) -> int:
    """How many characters at the end of `text` may be the beginning of `form`."""
    return next((length for length in range(min(len(form) - 1, len(text)), 0, -1) if text.endswith(form[:length])), 0)


@lru_cache(maxsize=1000)  # asked for each delivery; who asks holds the secret in memory anyway
def _forms(secret: str) -> frozenset[str]:
    """The ways in which a receiver may write what it got: as it is, in URLs, JSON and HTML, and as base64."""
    forms = {secret, html.escape(secret), json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    for encoded in {encode(secret, safe=safe) for encode in (quote, quote_plus) for safe in _LEFT_IN_URLS}:
        forms |= {encoded, _ESCAPE.sub(lambda escape: escape.group().lower(), encoded)}
    raw = secret.encode()
    return frozenset(forms | _base64_forms(raw) if len(raw) >= _LEAST_BASE64_BYTES else forms)


def _base64_forms(secret: bytes) -> set[str]:
    """In base64, alone or inside longer content, such as a binary answer: there it may begin at each of three places
    of a group, and what the neighbours do not touch is looked for."""
    alone = base64.b64encode(secret).decode()
    forms = {alone, alone.rstrip("=")}
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + secret).decode()
        forms.add(encoded[-(-offset * 8 // 6) : (offset + len(secret)) * 8 // 6])
    return forms | {form.translate(_URL_SAFE) for form in forms}
