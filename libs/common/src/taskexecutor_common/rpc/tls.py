"""TLS among the services: each shows its certificate, serving and calling, and believes those of one authority.

Files that were replaced are taken up without a restart: by a server with its next connection, by a caller with its next look
for peers. A replacement that is not whole yet, or that peers would refuse, is left alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import grpc

from taskexecutor_common.config.tls_files import PEER_NAME, TlsFiles, shake_hands
from taskexecutor_common.observability.logging import get_logger

CHANNEL_OPTIONS = [("grpc.ssl_target_name_override", PEER_NAME)]
"""What channels to peers need beside the credentials: their certificates hold this name, whatever their address."""

_log = get_logger("tls")


class _Identity(NamedTuple):
    """The content of the three files."""

    certificate: bytes
    key: bytes
    authority: bytes

    @classmethod
    def read(cls, files: TlsFiles) -> _Identity:
        return cls(*(Path(path).read_bytes() for path in (files.certificate, files.key, files.authority)))


class Tls:
    """Who this service is to the others, and whom it believes. Raises OSError when a file cannot be read."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._identity = _Identity.read(files)
        self._shown = self._identity
        self._for_channels = _channel_credentials(self._identity)

    @classmethod
    def of(cls, files: TlsFiles | None) -> Tls | None:
        """Of the files that a service is set up with; None where it has none, and speaks clear text."""
        return None if files is None else cls(files)

    def server_credentials(self) -> grpc.ServerCredentials:
        """For a port on which only callers with a certificate are heard."""
        # grpc asks for the configuration before each handshake, from a thread of its own.
        return grpc.dynamic_ssl_server_credentials(
            self._server_configuration(), self._server_configuration, require_client_authentication=True
        )

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """For channels to peers; the same object until the files were replaced."""
        identity = self._current()
        if identity is not self._shown:
            self._shown, self._for_channels = identity, _channel_credentials(identity)
        return self._for_channels

    def _server_configuration(self) -> grpc.ServerCertificateConfiguration:
        identity = self._current()
        return grpc.ssl_server_certificate_configuration([(identity.key, identity.certificate)], identity.authority)

    def _current(self) -> _Identity:
        """What the files hold; what they held before, while that is no good."""
        try:
            found = _Identity.read(self._files)
            if found != self._identity:
                shake_hands(self._files)
                if _Identity.read(self._files) == found:  # else they are being written just now
                    self._identity = found
                    _log.info("certificate replaced")
        except (OSError, ValueError) as error:
            _log.warning("replaced certificate not taken up", error=str(error))
        return self._identity


def _channel_credentials(identity: _Identity) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(identity.authority, identity.key, identity.certificate)
