"""Runs a command tied to its parent's life, as another user where asked: `python -I -S tether.py OPTIONS -- COMMAND`.

It is a program, not a function for `preexec_fn`: Python code between fork and exec is unsafe in a process that
has threads. It becomes the command (exec), so it leaves no process of its own behind.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
from collections.abc import Sequence

# linux/prctl.h, linux/securebits.h and linux/capability.h
PR_SET_PDEATHSIG = 1
PR_SET_SECUREBITS = 28
SECBIT_NO_SETUID_FIXUP = 1 << 2
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522


def command_line(
    command: Sequence[str],
    *,
    death_signal: signal.Signals,
    user: tuple[int, int] | None = None,
    reach_all: bool = False,
) -> list[str]:
    """`command`, wrapped so that it gets `death_signal` when the calling process ends, however that ends (Linux).

    The kernel watches the calling *thread*: start it from one that lives as long as the child should.
    `user` is the (uid, gid) to become; `reach_all` keeps root's right to pass closed folders, and nothing else of root.
    """
    options = [f"--death-signal={int(death_signal)}", f"--parent={os.getpid()}"]
    if user is not None:
        options += [f"--uid={user[0]}", f"--gid={user[1]}"]
    if reach_all:
        options.append("--reach-all")
    return [sys.executable, "-I", "-S", __file__, *options, "--", *command]


def main() -> None:
    """Entry point of the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--death-signal", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    parser.add_argument("--reach-all", action="store_true")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    if options.uid is not None:
        become(options.uid, options.gid, reach_all=options.reach_all)
    # After the change of user: that change clears the death signal.
    follow(options.parent, options.death_signal)
    os.execvp(options.command[0], options.command)


def become(uid: int, gid: int, *, reach_all: bool) -> None:
    """Gives up root for good; with `reach_all` the one right to pass and read closed folders stays."""
    if reach_all:
        # Else the change of user drops all capabilities, and access(2), which PostgreSQL asks, denies the one we keep.
        prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if reach_all:
        keep_only(CAP_DAC_OVERRIDE)


def keep_only(capability: int) -> None:
    """Drops all capabilities but one, which survives exec."""
    bits = 1 << capability
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    # Effective, permitted, inheritable; then the same three for capabilities 32 and up.
    sets = (ctypes.c_uint32 * 6)(bits, bits, bits, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(ctypes.byref(header), ctypes.byref(sets)) != 0:
        raise_errno("capset")
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability)


def follow(parent: int, death_signal: int) -> None:
    """Asks the kernel to signal this process when its parent dies; elsewhere than on Linux there is no such thing."""
    if sys.platform != "linux":
        return
    prctl(PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent:  # it died before we asked
        sys.exit(1)


def prctl(option: int, *values: int) -> None:
    """prctl(2); OSError when the kernel refuses."""
    arguments = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    if ctypes.CDLL(None, use_errno=True).prctl(option, *arguments) != 0:
        raise_errno("prctl")


def raise_errno(call: str) -> None:
    """Raises what the last failed C call left in errno."""
    code = ctypes.get_errno()
    raise OSError(code, f"{call}: {os.strerror(code)}")


if __name__ == "__main__":
    main()
