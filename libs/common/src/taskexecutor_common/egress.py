"""Which addresses deliveries may go to; asked about the very address that is about to be connected to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


# Sources: the IANA special-purpose address registries for IPv4 and IPv6, and the clouds' own documentation. They are
# spelled out because `ipaddress.is_global` differs between Python versions and knows no metadata services.
_NEVER = (
    ("unspecified", _networks("0.0.0.0/8", "::/128")),
    ("link-local", _networks("169.254.0.0/16", "fe80::/10")),
    (
        "a metadata service",
        _networks(
            "100.100.100.200/32",  # Alibaba Cloud, inside the carrier-grade NAT range
            "168.63.129.16/32",  # Azure's platform services, inside public space
            "192.0.0.192/32",  # Oracle Cloud
            "fd00:ec2::/32",  # Amazon EC2, inside the unique local range
            "fd20:ce::254/128",  # Google Cloud
            "fd00:42::42/128",  # Scaleway
        ),
    ),
    ("multicast", _networks("224.0.0.0/4", "ff00::/8")),
    ("broadcast", _networks("255.255.255.255/32")),
    (
        "reserved",
        _networks(
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "240.0.0.0/4",
            "2001::/23",
            "2001:db8::/32",
            "3fff::/20",
        ),
    ),
)
_ON_REQUEST = (
    ("loopback", _networks("127.0.0.0/8", "::1/128")),
    ("private", _networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")),
)
_IPV6_GLOBAL = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
# The upper half of an interface id that ends in an IPv4 address which ISATAP tunnels to: RFC 5214, section 6.1.
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})


class AddressRefused(OSError):
    """The egress policy forbids this address. An OSError, because that is what a connect may raise."""


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """What is reachable besides the public internet: `opened` are ranges out of loopback and private space."""

    opened: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, setting: str) -> EgressPolicy:
        """Reads `TE_EGRESS_ALLOW`: `loopback`, `private` and networks in CIDR form, separated by commas.

        Raises ValueError naming the word at fault, also for a network that can never be allowed.
        """
        words = (word.strip() for word in setting.split(","))
        return cls(tuple(network for word in words if word for network in _opened_by(word)))

    def refusal(self, address: str) -> str | None:
        """Why this address (text of an IPv4 or IPv6 address) may not be connected to; None when it may."""
        try:
            reached = _reached(ip_address(address))
        except ValueError:
            return "not an IP address"
        return next(filter(None, map(self._refusal_of, reached)), None)

    def _refusal_of(self, judged: Address) -> str | None:
        if kind := _kind(judged, _NEVER):
            return kind
        if kind := _kind(judged, _ON_REQUEST):
            return None if _within(judged, self.opened) else kind
        if isinstance(judged, IPv6Address) and judged not in _IPV6_GLOBAL:
            return "reserved"
        return None

    def check(self, address: str) -> None:
        """Raises AddressRefused when `address` may not be connected to."""
        if reason := self.refusal(address):
            raise AddressRefused(f"{address} is not allowed as a destination: {reason}")


def _opened_by(word: str) -> tuple[Network, ...]:
    for kind, networks in _ON_REQUEST:
        if word == kind:
            return networks
    try:
        network = ip_network(word)
    except ValueError as wrong:
        raise ValueError(f"'{word}' is neither 'loopback', 'private' nor a network such as 10.1.0.0/16") from wrong
    for kind, forbidden in _NEVER:
        if any(network.version == other.version and network.subnet_of(other) for other in forbidden):  # type: ignore[arg-type]  # the versions are equal, which mypy cannot see
            raise ValueError(f"'{word}' can never be allowed: it is {kind}")
    return (network,)


def _reached(address: Address) -> tuple[Address, ...]:
    """What may really be reached: IPv6 forms that carry an IPv4 address lead to that one. An address whose interface id
    is ISATAP's may lead either way, and so both must be allowed."""
    if isinstance(address, IPv4Address):
        return (address,)
    carried = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _NAT64:
        return (carried,)
    outer = address.ipv4_mapped or address.sixtofour or address
    return (outer, carried) if int(address) >> 32 & 0xFFFF_FFFF in _ISATAP else (outer,)


def _kind(address: Address, kinds: Iterable[tuple[str, tuple[Network, ...]]]) -> str | None:
    return next((kind for kind, networks in kinds if _within(address, networks)), None)


def _within(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in network for network in networks)
