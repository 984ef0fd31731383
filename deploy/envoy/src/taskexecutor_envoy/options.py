"""What may differ between two gateways."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
"""A piece of Envoy configuration, as JSON."""


@dataclass(frozen=True)
class GatewayOptions:
    """Settings of one gateway; how many threads it uses is said on Envoy's command line (`--concurrency`)."""

    descriptor: bytes
    """The serialised FileDescriptorSet; routes and message shapes come from it."""
    listen: str = "127.0.0.1:8080"
    """`host:port` to serve REST, gRPC and gRPC-Web on; the host is an IP address, port 0 picks a free one."""
    upstream: str = "127.0.0.1:50051"
    """The api: `host:port` or `unix:PATH`. A host name is looked up again and again; it may mean many replicas."""
    descriptor_path: str | None = None
    """Where Envoy finds the same descriptor; None writes it into the configuration."""
    admin_socket: str | None = None
    """Unix socket of Envoy's admin interface, mode 0600, wanted for a graceful drain; None: no admin interface."""
    max_body_bytes: int = 1 << 20
    """Largest REST request body; beyond it 413."""
    max_answer_bytes: int = 128 << 20
    """Largest REST answer, which Envoy holds whole while it writes JSON; a full page of executions has up to 64 MiB."""
    request_timeout_s: float = 60.0
    """How long a unary call may take, retries included; beyond it 504."""
    max_connections: int = 10_000
    """Callers' connections; more are refused, so that a flood cannot use up the memory."""
    cors_origins: tuple[str, ...] = ()
    """Origins (`https://console.example.com`) whose pages may call from a browser; none by default."""
    tls_cert: str | None = None
    """PEM file of the certificate that callers see, with its chain; None: they speak clear text. Needs `tls_key`."""
    tls_key: str | None = None
    """PEM file of its key."""
    upstream_cert: str | None = None
    """PEM file of the certificate that the gateway shows the api, for an api that speaks TLS; the three go together."""
    upstream_key: str | None = None
    """PEM file of its key."""
    upstream_ca: str | None = None
    """PEM file of the authority that the api's certificate must be of."""

    def __post_init__(self) -> None:
        """Raises ValueError for files that are of no use without others."""
        _all_or_none(self, "tls_cert", "tls_key")
        _all_or_none(self, "upstream_cert", "upstream_key", "upstream_ca")
        if self.upstream_ca and self.upstream.startswith("unix:"):
            raise ValueError("on a unix socket the api speaks clear text: upstream_ca is for host:port")


def _all_or_none(options: GatewayOptions, *names: str) -> None:
    missing = [name for name in names if not getattr(options, name)]
    if missing and len(missing) < len(names):
        raise ValueError(f"{', '.join(names)} go together: {', '.join(missing)} is missing")


def duration(seconds: float) -> str:
    """Seconds as Envoy writes a duration."""
    return f"{seconds:g}s"


def socket_address(host: str, port: int) -> Json:
    """Envoy's form of an internet address."""
    return {"socket_address": {"address": host, "port_value": port}}


def pipe_address(path: str, mode: int = 0) -> Json:
    """Envoy's form of a unix socket; `mode` matters only to who creates it."""
    return {"pipe": {"path": path, "mode": mode} if mode else {"path": path}}


def split_host_port(address: str) -> tuple[str, int]:
    """Splits `host:port` or `[v6]:port`; ValueError when it is neither."""
    host, separator, port = address.rpartition(":")
    if not (separator and host and port.isdigit() and int(port) < 1 << 16):
        raise ValueError(f"not of the form host:port: {address!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_ip(host: str) -> bool:
    """Whether `host` needs no lookup."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
