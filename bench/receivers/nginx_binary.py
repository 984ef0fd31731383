"""Finds nginx: the one that is installed, else Debian's package, unpacked into the benchmark's cache without root."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

from bench.places import CACHE

PACKAGES = ("nginx", "nginx-light")  # newer Debian has the program in the first, older in the second
SYSTEM_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin")
FETCH_SEC = 120


class NginxUnavailable(Exception):
    """Why there is no nginx; the message is for the user."""


def find_nginx() -> tuple[str, dict[str, str]]:
    """Path of nginx, and what its environment needs besides. Raises NginxUnavailable."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *SYSTEM_FOLDERS])
    if installed := shutil.which("nginx", path=path):
        return installed, {}
    unpacked = CACHE / "nginx"
    binary = unpacked / "usr/sbin/nginx"
    if not binary.exists():
        _unpack(unpacked)
    libraries = sorted({str(found.parent) for found in unpacked.glob("usr/lib/**/*.so*")})
    return str(binary), {"LD_LIBRARY_PATH": os.pathsep.join(libraries)}


def version_of(binary: str, environment: dict[str, str]) -> str:
    """As `1.22.1`."""
    told = subprocess.run([binary, "-v"], capture_output=True, text=True, check=True, env=os.environ | environment)
    return told.stderr.rpartition("/")[2].split()[0]


def _unpack(folder: pathlib.Path) -> None:
    """Downloads the package, then each library that the program misses, and unpacks all into `folder`."""
    for tool in ("apt-get", "dpkg-deb", "ldd"):
        if shutil.which(tool) is None:
            raise NginxUnavailable(f"nginx is needed as the receiver. There is none, and no {tool} to fetch it with.")
    scratch = folder.with_name("nginx.new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    for package in PACKAGES:
        if _fetch(package, scratch) and (scratch / "usr/sbin/nginx").exists():
            break
    else:
        raise NginxUnavailable("nginx is needed as the receiver: install it (on Debian and Ubuntu: apt install nginx).")
    for library in _missing_libraries(scratch / "usr/sbin/nginx"):
        _fetch(_package_of(library), scratch)
    shutil.rmtree(folder, ignore_errors=True)
    scratch.rename(folder)


def _fetch(package: str, folder: pathlib.Path) -> bool:
    ran = subprocess.run(["apt-get", "download", package], cwd=folder, capture_output=True, timeout=FETCH_SEC)
    for archive in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(archive), str(folder)], check=True, capture_output=True)
        archive.unlink()
    return ran.returncode == 0


def _missing_libraries(binary: pathlib.Path) -> list[str]:
    told = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False).stdout
    return re.findall(r"^\s*(\S+) => not found", told, re.MULTILINE)


def _package_of(library: str) -> str:
    """Debian's naming rule (policy 8.1): `libpcre2-8.so.0` comes in `libpcre2-8-0`."""
    name, _, number = library.partition(".so.")
    return f"{name}-{number}" if name[-1].isdigit() else f"{name}{number}"
