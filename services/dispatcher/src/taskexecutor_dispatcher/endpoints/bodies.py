"""What is kept of an answer's body, and in which form."""

from __future__ import annotations

import codecs
import re
from base64 import b64encode
from typing import Any, NamedTuple

# The part of a body that is kept, in bytes as they came.
KEPT_BYTES = 64 * 1024
# Read and thrown away beyond that, so that the connection can be used again; a longer answer costs its connection.
DRAINED_BYTES = 64 * 1024

_UTF_8 = "utf-8"
# Charsets that an answer is decoded by; any other name counts as UTF-8. A list, because Python knows codecs that are
# no charsets, some of which take quadratic time, and remembers each unknown name for ever.
_CHARSETS = frozenset(
    {
        *("ascii", "us-ascii", "utf-8", "utf8", "utf-16", "utf-16le", "utf-16be"),
        *("iso-8859-1", "latin1", "iso-8859-2", "iso-8859-5", "iso-8859-15"),
        *("windows-1250", "windows-1251", "windows-1252", "koi8-r"),
        *("shift_jis", "euc-jp", "iso-2022-jp", "euc-kr", "gb2312", "gbk", "gb18030", "big5"),
    }
)
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)


class Body(NamedTuple):
    """The beginning of an answer's body."""

    kept: bytes
    truncated: bool = False
    charset: str | None = None

    def to_json(self) -> dict[str, Any]:
        """`body` as text where it is text that PostgreSQL can store, else as base64; flags where they say something."""
        text = self._text()
        fields: dict[str, Any] = {"body": text if text is not None else self._base64()}
        if text is None:
            fields["body_encoding"] = "base64"
        if self.truncated:
            fields["truncated"] = True
        return fields

    def _base64(self) -> str:
        # Whole groups of what was cut, so that all its characters are those of the whole.
        kept = self.kept[: len(self.kept) // 3 * 3] if self.truncated else self.kept
        return b64encode(kept).decode("ascii")

    def _text(self) -> str | None:
        try:
            text = self._decoded(self.charset if self.charset in _CHARSETS else _UTF_8)
        except UnicodeError:
            return None
        return None if "\0" in text else text

    def _decoded(self, charset: str) -> str:
        if charset == _UTF_8 and not self.truncated:
            return self.kept.decode()
        # Incrementally, because the cut may go through a character; what is left of that one is dropped.
        return codecs.getincrementaldecoder(charset)().decode(self.kept, final=not self.truncated)


def named_charset(content_type: str) -> str | None:
    """The charset that a Content-Type names, in lower case. By an expression of our own: the standard library's parser
    raises IndexError on some headers, and headers are the receiver's to choose."""
    if ";" not in content_type:
        return None
    found = _CHARSET.search(content_type)
    return found.group(1).lower() if found else None
