"""The three files that TLS among the services is made of, and whether they will do.

It is checked by what it is for: a service with these files calls another that has the same, in memory.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

PEER_NAME = "taskexecutor.internal"
"""The DNS name in every certificate of a system.

Peers are found by address in the database, and addresses come and go with containers: no certificate could hold them. What
counts is that a certificate is of the system's own authority; the name says that it was made for one of its services.
"""

_TOGETHER = "TE_TLS_CERT_FILE, TE_TLS_KEY_FILE and TE_TLS_CA_FILE are set together or not at all"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of PEM files."""

    certificate: str
    """Of this service, followed by those between it and the authority's."""
    key: str
    """The certificate's key, not encrypted."""
    authority: str
    """Whose certificates are believed, of callers and of those who are called."""


def check_certificate(path: str) -> None:
    """Raises ValueError when the file cannot be read or holds no certificate."""
    try:
        Path(path).read_bytes()
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError as error:
        raise ValueError(f"{path} holds no certificate in PEM") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error


def check_key(path: str, certificate: str) -> None:
    """Raises ValueError when the file is not the key of a certificate that is set, or is set without one."""
    _check_together(path, certificate)
    if not path:
        return
    try:
        Path(path).read_bytes()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, path, _refuse_password)
    except ssl.SSLError as error:
        raise ValueError(
            f"{path} does not hold the key of the certificate in TE_TLS_CERT_FILE ({error.reason})"
        ) from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error


def check_authority(path: str, certificate: str, key: str | None) -> None:
    """Raises ValueError when peers with the same files would refuse this service. `key` is None when it is no good itself."""
    _check_together(path, certificate)
    if not path:
        return
    check_certificate(path)
    if key:
        try:
            shake_hands(TlsFiles(certificate, key, path))
        except ssl.SSLCertVerificationError as error:
            raise ValueError(
                f"a peer that trusts {path} refuses the certificate in TE_TLS_CERT_FILE: {error.verify_message}"
            ) from error
        except ssl.SSLError as error:
            raise ValueError(f"these files do not make a TLS connection: {error.reason}") from error


def shake_hands(files: TlsFiles) -> None:
    """Lets a caller and a server with these files meet in memory. Raises ssl.SSLError when one of them refuses."""
    contexts = [ssl.SSLContext(kind) for kind in (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER)]
    for context in contexts:
        context.load_cert_chain(files.certificate, files.key, _refuse_password)
        context.load_verify_locations(files.authority)
        context.verify_mode = ssl.CERT_REQUIRED
    client_context, server_context = contexts
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=PEER_NAME)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    while not (_advance(client) & _advance(server)):  # both, each time
        pass


def _advance(end: ssl.SSLObject) -> bool:
    """One step of the handshake, with what has arrived; true when this end is done."""
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _check_together(path: str, certificate: str) -> None:
    if bool(path) != bool(certificate):
        raise ValueError(f"is {_set(path)}, TE_TLS_CERT_FILE is {_set(certificate)}: {_TOGETHER}")


def _set(path: str) -> str:
    return "set" if path else "not set"


def _refuse_password() -> str:
    raise ValueError("the key is encrypted; services take it in the clear, in a file that only they may read")
