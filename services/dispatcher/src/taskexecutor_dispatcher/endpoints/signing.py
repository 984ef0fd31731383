"""Signatures of HTTP deliveries, as the Standard Webhooks specification says."""

from __future__ import annotations

from datetime import datetime

from standardwebhooks import Webhook


def sign(secret: str, message_id: str, sent_at: datetime, body: bytes) -> str:
    """The value of `webhook-signature`: `v1,` and the base64 of an HMAC-SHA256 over `id.timestamp.body`.

    `secret` is base64 with or without `whsec_`, which the endpoint's spec has checked (the library would skip what is
    not base64 and sign with a key that nobody has). `sent_at` is UTC; `body` is UTF-8, as all that templates make.
    """
    signature: str = Webhook(secret).sign(message_id, sent_at, body.decode())
    return signature
