"""`python -m tools.openapi DESCRIPTOR OUT`: writes the document of a descriptor that carries comments."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.openapi.contract import Contract
from tools.openapi.document import build
from tools.openapi.yaml_text import to_yaml


def main() -> int:
    """Entry point; tools/gen.py calls it."""
    descriptor, out = map(Path, sys.argv[1:])
    out.write_text(to_yaml(build(Contract.parse(descriptor.read_bytes()))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
