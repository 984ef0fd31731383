"""Certificate authorities that live for one test run."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Issued:
    """Files of a certificate and its key, which only their owner may read."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; `folder` keeps their files, and its own certificate as `file`."""

    def __init__(self, folder: Path, name: str = "Test authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        basic = x509.BasicConstraints(ca=True, path_length=0)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(basic, critical=True).add_extension(usage, critical=True)
        self._certificate = builder.sign(self._key, SHA256())
        self.file = folder / f"authority-{self._certificate.serial_number}.pem"
        """Its own certificate."""
        self.file.write_text(self.pem)

    def trusting(self) -> ssl.SSLContext:
        """What a client that trusts this authority alone uses."""
        return ssl.create_default_context(cadata=self.pem)

    @property
    def pem(self) -> str:
        """Its own certificate."""
        return self._certificate.public_bytes(Encoding.PEM).decode()

    def serving(self, *, address: str = "127.0.0.1", name: str | None = None, days: int = 1) -> ssl.SSLContext:
        """What a server with a certificate for that address, or that name, uses; negative `days`: expired since then."""
        issued = self.issue(names=[name] if name else [], addresses=[] if name else [address], days=days)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(issued.certificate, issued.key)
        return context

    def issue(
        self,
        common_name: str = "Test",
        *,
        names: Sequence[str] = (),
        addresses: Sequence[str] = (),
        days: int = 1,
        password: str | None = None,
    ) -> Issued:
        """A new certificate for DNS names and addresses; negative `days`: expired since then. `password` encrypts the key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subjects = [*(x509.DNSName(name) for name in names), *(x509.IPAddress(ip_address(each)) for each in addresses)]
        builder = _builder(_name(common_name), self._name, key.public_key(), days=days)
        certificate = builder.add_extension(x509.SubjectAlternativeName(subjects), critical=False).sign(
            self._key, SHA256()
        )
        sealing: KeySerializationEncryption = (
            BestAvailableEncryption(password.encode()) if password is not None else NoEncryption()
        )
        issued = Issued(*(self._folder / f"{certificate.serial_number}{suffix}" for suffix in (".pem", ".key")))
        issued.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        with os.fdopen(os.open(issued.key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealing))
        return issued


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, days: int = 1
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now + timedelta(days=days))
    )
