"""A PostgreSQL that speaks TLS and nothing else over TCP.

The embedded one was built without TLS, so this is one that is installed on the machine.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import urllib.parse
from pathlib import Path
from typing import Any

import psycopg

from taskexecutor_local import tether
from taskexecutor_local.ports import free_ports
from tests.servers.processes import wait_until
from tests.support.certificates import Authority, Issued

USER = "taskexecutor"
ADDRESS = "127.0.0.1"
PATIENCE_SEC = 30.0

# A client shows a certificate with the user's name, or is not heard. The tests themselves come in by the unix socket.
ACCESS = f"local all all trust\nhostssl all {USER} {ADDRESS}/32 cert\n"


def find_binaries() -> Path | None:
    """The folder of an installed PostgreSQL that was built with TLS; None where there is none."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if on_path := shutil.which("postgres"):
        folders.append(Path(on_path).resolve().parent)
    return next((folder for folder in folders if (folder / "pg_config").exists() and _has_tls(folder)), None)


def _has_tls(folder: Path) -> bool:
    return "ssl" in subprocess.run([folder / "pg_config", "--configure"], capture_output=True, text=True).stdout


class PostgresWithTls:
    """One server in `folder`, which it gets for itself."""

    def __init__(self, binaries: Path, folder: Path, authority: Authority) -> None:
        self._binaries = binaries
        self._folder = folder
        self._authority = authority
        (self._port,) = free_ports(1)
        self._owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Makes the cluster and starts the server; returns when it answers."""
        self._give_away(self._folder)
        data = str(self._folder / "data")
        initdb = [
            str(self._binaries / "initdb"),
            "-D",
            data,
            "-U",
            USER,
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
        ]
        subprocess.run(self._as_owner([*initdb, "--no-sync"]), cwd="/", check=True, capture_output=True)
        (self._folder / "data" / "pg_hba.conf").write_text(ACCESS)
        self._put(self._authority.file, "authority.pem")
        self.show(self._authority)
        settings = {
            "ssl": "on",
            "ssl_cert_file": self._folder / "server.pem",
            "ssl_key_file": self._folder / "server.key",
            "ssl_ca_file": self._folder / "authority.pem",
            "listen_addresses": ADDRESS,
            "port": self._port,
            "unix_socket_directories": self._folder,
            "fsync": "off",
        }
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                self._as_owner([str(self._binaries / "postgres"), "-D", data, *flags]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )
        wait_until(self._answers, PATIENCE_SEC, f"PostgreSQL did not start, see {self._folder}/log")

    def stop(self) -> None:
        """Ends it; connections are cut."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(PATIENCE_SEC)

    def show(self, by: Authority) -> None:
        """Gives the server a new certificate for its address, by that authority; one that runs takes it with `reload`."""
        issued = by.issue(addresses=[ADDRESS])
        self._put(issued.certificate, "server.pem")
        self._put(issued.key, "server.key")

    def reload(self) -> None:
        """Lets the server read its files again; it does so in a moment."""
        self.look("SELECT pg_reload_conf()")

    def look(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Runs a statement, beside all TLS."""
        with psycopg.connect(host=str(self._folder), port=self._port, user=USER, dbname="postgres") as connection:
            return connection.execute(statement, parameters).fetchall()

    def url(self, client: Issued | None, **parameters: str) -> str:
        """A URL that wants the server verified, and shows a client's certificate. `parameters` of libpq replace these."""
        wanted = {"sslmode": "verify-full", "sslrootcert": str(self._authority.file), "gssencmode": "disable"}
        if client is not None:
            wanted |= {"sslcert": str(client.certificate), "sslkey": str(client.key)}
        query = urllib.parse.urlencode(wanted | parameters)
        return f"postgresql://{USER}@{ADDRESS}:{self._port}/postgres?{query}"

    def client(self, by: Authority | None = None) -> Issued:
        """A certificate in the name of the database's user."""
        return (by or self._authority).issue(USER)

    @property
    def version(self) -> str:
        """As `15.18`."""
        return str(self.look("SHOW server_version")[0][0]).split()[0]

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        probe = [str(self._binaries / "pg_isready"), "-q", "-h", str(self._folder), "-p", str(self._port)]
        return subprocess.run(probe, check=False).returncode == 0

    def _put(self, source: Path, name: str) -> None:
        target = self._folder / name
        shutil.copy(source, target)
        target.chmod(0o600)
        self._give_away(target)

    def _give_away(self, path: Path) -> None:
        if self._owner is not None:
            os.chown(path, self._owner.pw_uid, self._owner.pw_gid)

    def _as_owner(self, command: list[str]) -> list[str]:
        user = (self._owner.pw_uid, self._owner.pw_gid) if self._owner else None
        return tether.command_line(command, death_signal=signal.SIGINT, user=user)
