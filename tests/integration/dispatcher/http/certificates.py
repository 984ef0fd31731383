"""A certificate authority that lives for one test run."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    """Signs server certificates; `folder` keeps the files that the ssl module wants."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Test authority")
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

    def trusting(self) -> ssl.SSLContext:
        """What a client that trusts this authority alone uses."""
        return ssl.create_default_context(cadata=self.pem)

    @property
    def pem(self) -> str:
        """Its own certificate."""
        return self._certificate.public_bytes(Encoding.PEM).decode()

    def serving(self, *, address: str = "127.0.0.1", name: str | None = None, days: int = 1) -> ssl.SSLContext:
        """What a server with a certificate for that address, or that name, uses; negative `days`: expired since then."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name("Test receiver"), self._name, key.public_key(), days=days)
        subject = x509.IPAddress(ip_address(address)) if name is None else x509.DNSName(name)
        names = x509.SubjectAlternativeName([subject])
        certificate = builder.add_extension(names, critical=False).sign(self._key, SHA256())
        path = self._folder / f"{certificate.serial_number}.pem"
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


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
