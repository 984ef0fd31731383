"""The egress policy's table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_common.egress import AddressRefused, EgressPolicy

NOTHING = EgressPolicy.parse("")
EVERYTHING = EgressPolicy.parse("loopback, private, 0.0.0.0/0, ::/0")

NEVER = [
    ("0.0.0.0", "unspecified"),
    ("0.1.2.3", "unspecified"),
    ("::", "unspecified"),
    ("169.254.169.254", "link-local"),
    ("169.254.170.2", "link-local"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("fe80::a9fe:a9fe", "link-local"),
    ("100.100.100.200", "a metadata service"),
    ("168.63.129.16", "a metadata service"),
    ("192.0.0.192", "a metadata service"),
    ("fd00:ec2::254", "a metadata service"),
    ("fd00:ec2::23", "a metadata service"),
    ("fd20:ce::254", "a metadata service"),
    ("fd00:42::42", "a metadata service"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("ff02::1", "multicast"),
    ("255.255.255.255", "broadcast"),
    ("240.0.0.1", "reserved"),
    ("192.0.0.8", "reserved"),
    ("192.0.2.1", "reserved"),
    ("198.18.0.1", "reserved"),
    ("198.51.100.7", "reserved"),
    ("203.0.113.9", "reserved"),
    ("2001:db8::1", "reserved"),
    ("2001::1", "reserved"),
    ("100::1", "reserved"),
    ("fec0::1", "reserved"),
    ("64:ff9b:1::1", "reserved"),
    ("64:ff9b:1:fffe::7f00:1", "reserved"),
    ("2001:0:7f00:1::", "reserved"),
    ("2001:0:4136:e378:8000:63bf:80ff:fffe", "reserved"),
    ("5f00::1", "reserved"),
    ("0:0:0:0:0:ffff:a9fe:a9fe", "link-local"),
    ("::ffff:169.254.169.254%eth0", "link-local"),
    ("fe80::5efe:8.8.8.8", "link-local"),
    ("2a00:1450::5efe:169.254.169.254", "link-local"),
    ("2a00:1450::200:5efe:a9fe:a9fe", "link-local"),
    ("2002:808:808::5efe:169.254.169.254", "link-local"),
    ("::127.0.0.1", "reserved"),
    ("::ffff:0:127.0.0.1", "reserved"),
    ("::ffff:169.254.169.254", "link-local"),
    ("64:ff9b::a9fe:a9fe", "link-local"),
    ("2002:a9fe:a9fe::", "link-local"),
    ("2130706433", "not an IP address"),
    ("0x7f000001", "not an IP address"),
    ("017700000001", "not an IP address"),
    ("127.1", "not an IP address"),
    ("0177.0.0.1", "not an IP address"),
    ("127.0.0.1.", "not an IP address"),
    ("127.0.0.1:80", "not an IP address"),
    ("[::1]", "not an IP address"),
    ("127。0。0。1", "not an IP address"),
    ("①②⑦.0.0.1", "not an IP address"),
    ("metadata.google.internal", "not an IP address"),
    ("localhost", "not an IP address"),
    ("/run/docker.sock", "not an IP address"),
    ("", "not an IP address"),
]
LOOPBACK = [
    "127.0.0.1",
    "127.255.255.254",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "::1%lo",
    "::ffff:127.0.0.1%1",
    "2a00:1450::5efe:127.0.0.1",
    "2002:7f00:1::5efe:8.8.8.8",
]
PRIVATE = [
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.127.255.255",
    "fd12:3456::1",
    "fc00::1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "2a00:1450::200:5efe:10.0.0.1",
    "fd12:3456::5efe:8.8.8.8",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450::1",
    "64:ff9b::808:808",
    "2002:808:808::",
    "::ffff:8.8.8.8",
    "2a00:1450::5efe:8.8.8.8",
]


@pytest.mark.parametrize(("address", "reason"), NEVER)
def test_some_addresses_are_never_allowed(address: str, reason: str) -> None:
    assert NOTHING.refusal(address) == EVERYTHING.refusal(address) == reason


@pytest.mark.parametrize("address", LOOPBACK)
def test_loopback_is_allowed_by_its_own_word_only(address: str) -> None:
    assert NOTHING.refusal(address) == EgressPolicy.parse("private").refusal(address) == "loopback"
    assert EgressPolicy.parse("loopback").refusal(address) is None


@pytest.mark.parametrize("address", PRIVATE)
def test_private_ranges_are_allowed_by_their_own_word_only(address: str) -> None:
    assert NOTHING.refusal(address) == EgressPolicy.parse("loopback").refusal(address) == "private"
    assert EgressPolicy.parse("private").refusal(address) is None


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_always_allowed(address: str) -> None:
    assert NOTHING.refusal(address) is None


def test_a_network_opens_just_itself() -> None:
    policy = EgressPolicy.parse("10.1.0.0/16")
    assert policy.refusal("10.1.255.255") is None
    assert policy.refusal("::ffff:10.1.0.1") is None
    assert policy.refusal("10.2.0.0") == "private"
    assert policy.refusal("127.0.0.1") == "loopback"


def test_words_may_have_blanks_around_them_and_be_missing() -> None:
    assert EgressPolicy.parse(" loopback , ,10.1.0.0/16,").refusal("10.1.0.1") is None


@pytest.mark.parametrize("word", ["everything", "10.1.0.0/33", "10.1.0.1/16", "127.0.0.1:80", "Loopback"])
def test_a_word_that_means_nothing_is_named(word: str) -> None:
    with pytest.raises(ValueError, match=f"'{word}' is neither"):
        EgressPolicy.parse(f"loopback,{word}")


@pytest.mark.parametrize("word", ["169.254.0.0/16", "169.254.169.254", "fe80::/64", "fd00:ec2::/48", "0.0.0.0"])
def test_a_network_that_can_never_be_allowed_is_a_fault(word: str) -> None:
    with pytest.raises(ValueError, match="can never be allowed"):
        EgressPolicy.parse(word)


def test_a_check_raises_what_a_connect_may_raise() -> None:
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1 is not allowed as a destination: private"):
        NOTHING.check("10.0.0.1")
    assert issubclass(AddressRefused, OSError)


@given(st.ip_addresses(v=4))
def test_an_embedded_ipv4_address_is_judged_as_itself(address: object) -> None:
    for form in (f"::ffff:{address}", f"64:ff9b::{address}"):
        assert NOTHING.refusal(form) == NOTHING.refusal(str(address))
        assert EVERYTHING.refusal(form) == EVERYTHING.refusal(str(address))


@given(st.ip_addresses())
def test_what_is_allowed_without_a_setting_is_global(address: object) -> None:
    if NOTHING.refusal(str(address)) is None:
        assert not any(
            getattr(address, kind) for kind in ("is_private", "is_loopback", "is_link_local", "is_multicast")
        ) or getattr(address, "ipv4_mapped", None)
