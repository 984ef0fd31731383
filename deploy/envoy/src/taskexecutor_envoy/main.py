"""`taskexecutor-envoy-config`: writes the gateway's configuration, or checks that the committed one is current."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from taskexecutor_envoy.config import build_config
from taskexecutor_envoy.options import GatewayOptions
from taskexecutor_envoy.tls import PEER_NAME

HERE = Path(__file__).resolve().parents[2]
DESCRIPTOR = HERE / "descriptor.binpb"
COMMITTED = HERE / "envoy.json"

INLINE = "inline"


def main(arguments: list[str] | None = None) -> int:
    """Entry point; without arguments it writes the committed file for docker-compose."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    try:
        text = render(_options(asked))
    except ValueError as error:
        parser.error(str(error))
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
    callers = parser.add_argument_group("TLS for callers", "Both, or callers speak clear text. PEM files.")
    callers.add_argument("--tls-cert", metavar="PATH", help="the certificate that callers see, with its chain")
    callers.add_argument("--tls-key", metavar="PATH", help="its key")
    api = parser.add_argument_group(
        "TLS towards the api", "All three, where the api has its TE_TLS_ settings. PEM files."
    )
    api.add_argument("--upstream-cert", metavar="PATH", help=f"the gateway's certificate, for {PEER_NAME}")
    api.add_argument("--upstream-key", metavar="PATH", help="its key")
    api.add_argument("--upstream-ca", metavar="PATH", help="the authority that the api's certificate must be of")
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
        tls_cert=asked.tls_cert,
        tls_key=asked.tls_key,
        upstream_cert=asked.upstream_cert,
        upstream_key=asked.upstream_key,
        upstream_ca=asked.upstream_ca,
    )


def _check(path: str, text: str) -> int:
    file = Path(path)
    if file.exists() and file.read_text(encoding="utf-8") == text:
        return 0
    print(f"not current, run `taskexecutor-envoy-config`: {path}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
