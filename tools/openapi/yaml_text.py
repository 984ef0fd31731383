"""The document as text: the same document gives the same text, long prose stands in folded blocks."""

from __future__ import annotations

from typing import Any

import yaml

_HEADER = "# Generated from proto/ by `make gen`; do not edit.\n"
_WIDTH = 120
_LONG = 80


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, and writes no anchors."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


def _style(text: str) -> str | None:
    if "\n" in text:
        return "|"
    return ">" if len(text) > _LONG else None


_Dumper.add_representer(str, _text)


def to_yaml(document: dict[str, Any]) -> str:
    """The text of the file."""
    return _HEADER + yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
