"""Takes secrets out of whatever is kept or shown."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "***"


class Mask:
    """Replaces secret values, and the ways they may be written, by `***` in any JSON value."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        # Longest first: a secret that contains another is replaced as a whole.
        self._forms = sorted(forms, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without secrets."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
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


def _forms(secret: str) -> set[str]:
    """As it is, percent-encoded, inside JSON, and as base64 where that is long enough to be told from chance."""
    forms = {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}
    forms.add(json.dumps(secret, ensure_ascii=False)[1:-1])
    if len(secret) >= 6:
        encoded = base64.b64encode(secret.encode()).decode()
        forms |= {encoded, encoded.rstrip("=")}
    return forms
