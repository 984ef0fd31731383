"""`taskexecutor-envoy-config`: writes the gateway's configuration, or checks that the committed one is current."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from taskexecutor_envoy.config import build_config
from taskexecutor_envoy.options import GatewayOptions

HERE = Path(__file__).resolve().parents[2]
DESCRIPTOR = HERE / "descriptor.binpb"
COMMITTED = HERE / "envoy.json"

INLINE = "inline"


def main(arguments: list[str] | None = None) -> int:
    """Entry point; without arguments it writes the committed file for docker-compose."""
    asked = _parser().parse_args(arguments)
    text = render(_options(asked))
    if asked.check:
        return _check(asked.out, text)
    if asked.out == "-":
        sys.stdout.write(text)
    else:
        Path(asked.out).write_text(text, encoding="utf-8")
    return 0


def render(options: GatewayOptions) -> str:
    """The configuration as the text of a JSON file; the same options give the same text."""
    return json.dumps(build_config(options), indent=1) + "\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="taskexecutor-envoy-config", description=__doc__)
    parser.add_argument("--listen", default="0.0.0.0:8080", help="host:port to serve on (default: %(default)s)")
    parser.add_argument(
        "--upstream", default="api:50051", help="the api: host:port or unix:PATH (default: %(default)s)"
    )
    parser.add_argument("--admin-socket", metavar="PATH", help="unix socket of the admin interface (default: none)")
    parser.add_argument(
        "--descriptor",
        default="/etc/envoy/descriptor.binpb",
        help=f"where Envoy will find descriptor.binpb, or '{INLINE}' to write it into the file (default: %(default)s)",
    )
    parser.add_argument("--out", default=str(COMMITTED), help="file to write, '-' for stdout (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when --out is not current")
    return parser


def _options(asked: argparse.Namespace) -> GatewayOptions:
    return GatewayOptions(
        descriptor=DESCRIPTOR.read_bytes(),
        listen=asked.listen,
        upstream=asked.upstream,
        admin_socket=asked.admin_socket,
        descriptor_path=None if asked.descriptor == INLINE else asked.descriptor,
    )


def _check(path: str, text: str) -> int:
    file = Path(path)
    if file.exists() and file.read_text(encoding="utf-8") == text:
        return 0
    print(f"not current, run `taskexecutor-envoy-config`: {path}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
