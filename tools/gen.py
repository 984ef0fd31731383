"""Rewrites everything that is made from proto/: Python code, stubs, the descriptor that Envoy reads, and the OpenAPI document.

`--check` writes nothing and fails when the committed output is not what this run would write.
"""

from __future__ import annotations

import argparse
import filecmp
import pathlib
import shutil
import subprocess
import sys
import tempfile

import google.api
import grpc_tools

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
GEN = PROTO / "gen"
DESCRIPTOR = ROOT / "deploy/envoy/descriptor.binpb"
OPENAPI = ROOT / "docs/openapi.yaml"
# Envoy prints error details only when their types are in the descriptor; grpc.reflection wants them too.
DETAILS = ["google/rpc/error_details.proto", "google/rpc/status.proto"]


def includes() -> list[str]:
    """Include paths: ours, the google/api and google/rpc of googleapis-common-protos, protoc's own."""
    common = pathlib.Path(next(iter(google.api.__path__))).parent.parent
    well_known = pathlib.Path(next(iter(grpc_tools.__path__))) / "_proto"
    return [f"-I{PROTO}", f"-I{common}", f"-I{well_known}"]


def sources() -> list[str]:
    """Our proto files, relative to proto/."""
    return sorted(str(path.relative_to(PROTO)) for path in (PROTO / "taskexecutor").rglob("*.proto"))


def protoc(*arguments: str) -> None:
    """Runs protoc; its own message is all the report that is needed."""
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *includes(), *arguments], check=True)


def write_python(out: pathlib.Path) -> None:
    """Writes modules and stubs below `out`, with packages and py.typed."""
    bin_dir = pathlib.Path(sys.executable).parent
    protoc(
        f"--plugin=protoc-gen-mypy_grpc={bin_dir / 'protoc-gen-mypy_grpc'}",
        f"--python_out={out}",
        f"--pyi_out={out}",
        f"--grpc_python_out={out}",
        f"--mypy_grpc_out={out}",
        *sources(),
    )
    for path in out.rglob("*_pb2_grpc.py*"):
        definition = PROTO / path.relative_to(out).parent / (path.name.split("_pb2")[0] + ".proto")
        if "\nservice " not in definition.read_text():
            path.unlink()
    for folder in [out / "taskexecutor", *(p for p in (out / "taskexecutor").rglob("*") if p.is_dir())]:
        (folder / "__init__.py").touch()
    (out / "taskexecutor/py.typed").touch()


def write_descriptor(out: pathlib.Path, *, source_info: bool = False) -> None:
    """Writes the descriptor set of our files and the error details, imports included."""
    flags = ["--include_imports", f"--descriptor_set_out={out}"]
    protoc(*flags, *(["--include_source_info"] if source_info else []), *sources(), *DETAILS)


def write_openapi(out: pathlib.Path) -> None:
    """Writes the OpenAPI document, in a process of its own: it imports code that imports what was just generated."""
    with tempfile.TemporaryDirectory() as scratch:
        descriptor = pathlib.Path(scratch) / "described.binpb"
        write_descriptor(descriptor, source_info=True)
        subprocess.run([sys.executable, "-m", "tools.openapi", descriptor, out], check=True, cwd=ROOT)


def same(left: pathlib.Path, right: pathlib.Path) -> bool:
    """Whether both files are there and hold the same."""
    return left.exists() and right.exists() and filecmp.cmp(left, right, shallow=False)


def differences(left: pathlib.Path, right: pathlib.Path) -> list[str]:
    """Files that are not the same on both sides, relative to `left`."""
    names = {p.relative_to(top) for top in (left, right) for p in top.rglob("*") if p.is_file()}
    names = {n for n in names if "__pycache__" not in n.parts}
    return sorted(str(n) for n in names if not same(left / n, right / n))


def main() -> int:
    """Entry point of `make gen` and `make gen-check`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--descriptor", type=pathlib.Path, help="write only a descriptor with comments to this file")
    options = parser.parse_args()
    if options.descriptor:
        write_descriptor(options.descriptor, source_info=True)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        fresh = pathlib.Path(scratch) / "gen"
        fresh.mkdir()
        write_python(fresh)
        descriptor = pathlib.Path(scratch) / "descriptor.binpb"
        write_descriptor(descriptor)
        if options.check:
            stale = [f"proto/gen/{name}" for name in differences(GEN, fresh)]
            openapi = pathlib.Path(scratch) / "openapi.yaml"
            write_openapi(openapi)
            for made, committed in ((descriptor, DESCRIPTOR), (openapi, OPENAPI)):
                if not same(made, committed):
                    stale.append(str(committed.relative_to(ROOT)))
            for name in stale:
                print(f"not current, run `make gen`: {name}", file=sys.stderr)
            return 1 if stale else 0
        shutil.rmtree(GEN, ignore_errors=True)
        shutil.copytree(fresh, GEN)
        DESCRIPTOR.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(descriptor, DESCRIPTOR)
    write_openapi(OPENAPI)
    return 0


if __name__ == "__main__":
    sys.exit(main())
