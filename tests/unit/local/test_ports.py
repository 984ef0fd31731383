"""Ports for our own servers."""

from __future__ import annotations

import pathlib
import socket

import pytest

from taskexecutor_local import ports
from taskexecutor_local.ports import LOOPBACK, free_ports, why_not_free


def test_free_ports_are_different_and_free() -> None:
    found = free_ports(50)
    assert len(set(found)) == 50
    assert [why_not_free(port) for port in found] == [None] * 50


def test_a_port_that_is_listened_on_is_not_free() -> None:
    (port,) = free_ports(1)
    with socket.create_server((LOOPBACK, port)):
        assert why_not_free(port) == "Address already in use"


@pytest.mark.skipif(not ports._kernel_stays_above(), reason="this machine's kernel hands out low ports")
def test_no_outgoing_connection_gets_a_port_that_was_found_free() -> None:
    with socket.create_server((LOOPBACK, 0)) as server, socket.create_connection(server.getsockname()) as connection:
        handed_out = connection.getsockname()[1]
    assert all(port < 22_000 < handed_out for port in free_ports(20))


@pytest.mark.parametrize("handed_out", ["1024\t60999\n", "15000\t60999\n"])
def test_where_the_kernel_hands_out_low_ports_it_is_asked_for_some(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, handed_out: str
) -> None:
    (tmp_path / "range").write_text(handed_out)
    monkeypatch.setattr(ports, "_HANDED_OUT", tmp_path / "range")
    found = free_ports(20)
    assert len(set(found)) == 20
    assert [why_not_free(port) for port in found] == [None] * 20
