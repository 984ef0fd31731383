"""Settings that are texts with a form: each is checked by what reads it later, and stays the text that it was."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, SecretStr

from taskexecutor_common.config.addresses import check_advertised, check_listen, check_metrics
from taskexecutor_common.config.database_url import check_database_url
from taskexecutor_common.crypto import KeyRing
from taskexecutor_common.egress import EgressPolicy


def check_key_ring(ring: SecretStr) -> SecretStr:
    """Answers `ring` when its keys can be read; ValueError else, which names the entry and shows nothing of it."""
    KeyRing.parse(ring.get_secret_value())
    return ring


def check_egress(text: str) -> str:
    """Answers `text` when it is a list of what deliveries may reach; ValueError else."""
    EgressPolicy.parse(text)
    return text


DatabaseUrl = Annotated[str, AfterValidator(check_database_url)]
EncryptionKeys = Annotated[SecretStr, AfterValidator(check_key_ring)]
EgressAllow = Annotated[str, AfterValidator(check_egress)]
ListenAddress = Annotated[str, AfterValidator(check_listen)]
MetricsAddress = Annotated[str, AfterValidator(check_metrics)]
AdvertisedAddress = Annotated[str, AfterValidator(check_advertised)]
