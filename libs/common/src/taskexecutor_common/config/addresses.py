"""What the settings take for an address: where a port is opened, where metrics are served, where others find a process.

What is checked is what can be told from the text alone: whether a name can be looked up and a port is free shows at the start.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address

HIGHEST_PORT = 65_535
_LOOPBACK = "127.0.0.1"
_UNIX = re.compile(r"unix(-abstract)?:.+")
_GRPC_SCHEME = re.compile(r"(dns|ipv4|ipv6):(//[^/]*/)?")
_HOST_NAME = re.compile(r"[\w.-]+")


def check_listen(text: str) -> str:
    """Answers `text` when gRPC can listen there: host:port or unix:PATH; ValueError else."""
    if not _UNIX.fullmatch(text):
        _check_reachable(text, "host:port, such as 0.0.0.0:50051 or [::]:50051, or unix:PATH", lowest_port=0)
    return text


def check_advertised(text: str) -> str:
    """Answers `text` when others can call it: host:port or another target of gRPC's; empty for none. ValueError else."""
    if text and not _UNIX.fullmatch(text):
        scheme = _GRPC_SCHEME.match(text)
        target = text[scheme.end() :] if scheme else text
        _check_reachable(target, "host:port, such as dispatcher-1:50053", lowest_port=1)
    return text


def check_metrics(text: str) -> str:
    """Answers `text` when it is empty or `metrics_address` reads it; ValueError else."""
    if text:
        metrics_address(text)
    return text


def metrics_address(text: str) -> tuple[str, int]:
    """Host and port to serve metrics on. Without a host, `:port` or `port`, that is the loopback interface."""
    expected = "host:port, such as 0.0.0.0:9464, or nothing"
    host, _, port = text.rpartition(":")
    if host and not _is_host(host) and not _is_ipv6(host):
        raise ValueError(f"what stands before the port is no host; expected {expected}")
    return host.removeprefix("[").removesuffix("]") or _LOOPBACK, _port(port, expected, lowest=0)


def is_port(text: str, *, lowest: int) -> bool:
    """True for a decimal number of `lowest` to 65535; blanks around it do no harm to those that read it."""
    digits = text.strip()
    return digits.isascii() and digits.isdigit() and lowest <= int(digits) <= HIGHEST_PORT


def _check_reachable(text: str, expected: str, *, lowest_port: int) -> None:
    host, _, port = text.rpartition(":")
    _port(port, expected, lowest=lowest_port)
    if not _is_host(host):
        raise ValueError(f"what stands before the port is no host; expected {expected}")


def _port(text: str, expected: str, *, lowest: int) -> int:
    if not is_port(text, lowest=lowest):
        raise ValueError(f"no port of {lowest} to {HIGHEST_PORT} at its end; expected {expected}")
    return int(text)


def _is_host(text: str) -> bool:
    """A name, an IPv4 address, or an IPv6 address in brackets."""
    if text.startswith("[") and text.endswith("]"):
        return _is_ipv6(text[1:-1])
    return bool(_HOST_NAME.fullmatch(text)) and _can_be_looked_up(text)


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


def _can_be_looked_up(name: str) -> bool:
    """The resolver raises no OSError for such names (an empty label, one of more than 63 characters): it breaks down."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True
