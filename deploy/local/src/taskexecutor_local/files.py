"""Files that only their owner may read."""

from __future__ import annotations

import os
import pathlib


def write_private(path: pathlib.Path, text: str) -> None:
    """Writes a file that only its owner may read; a crash leaves the whole file or none."""
    scratch = path.with_name(path.name + ".tmp")
    scratch.unlink(missing_ok=True)  # its mode may be another's
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")
    scratch.replace(path)
