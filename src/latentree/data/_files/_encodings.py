"""Encodings of text: found out from the bytes of a file, and turned into UTF-8 as it is read."""

from __future__ import annotations

import codecs
import io
import warnings
from typing import BinaryIO, cast

from latentree.errors import DataWarning, FileError

UTF8 = "utf-8"

_CHUNK = 1 << 20
"""Bytes that are read at a time."""

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
"""Marks at the beginning of a file; those of UTF-32 begin like those of UTF-16."""


class NotUTF8Error(FileError):
    """Text that is to be UTF-8 is not."""


def marked_encoding(stream: BinaryIO) -> str:
    """Return the encoding that the first bytes of a file show; UTF-8 if they show none."""
    head = stream.read(1000)
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name
    if _every_other_zero(head):
        return "utf-16-le" if head[1:2] == b"\0" else "utf-16-be"
    return UTF8


def likely_encoding(path: str, stream: BinaryIO) -> str:
    """Return the encoding of a file that is not UTF-8 throughout, and warn of it.

    It is cp1252, the usual encoding of Windows in the West, of which Latin-1 is a part, unless the
    file holds characters in UTF-8 as well: then it is damaged.
    """
    advice = "say which encoding it is in, as in encoding='latin-1'"
    fault, is_mixed = _first_fault(stream)
    if is_mixed:
        raise FileError(
            f"byte {fault} of the file is not text in UTF-8, but characters before it are: correct "
            f"it, or {advice}"
        )
    stream.seek(0)
    while data := stream.read(_CHUNK):
        if data.translate(None, _UNDEFINED) != data:
            raise FileError(
                f"byte {fault} of the file is not text in UTF-8, nor is the file cp1252: {advice}"
            )
    warnings.warn(
        f"{path}: read as cp1252 (Windows, Western Europe), because it is not UTF-8: if names or "
        f"labels look wrong, {advice}",
        DataWarning,
        stacklevel=6,
    )
    return "cp1252"


def _first_fault(stream: BinaryIO) -> tuple[int, bool]:
    """Return the first byte that is not UTF-8, and whether there are characters in UTF-8."""
    decoder, n_before, has_utf8 = codecs.getincrementaldecoder(UTF8)(), 0, False
    while data := stream.read(_CHUNK):
        n_held = len(decoder.getstate()[0])
        try:
            text = decoder.decode(data)
        except UnicodeDecodeError as error:
            has_utf8 = has_utf8 or not error.object[: error.start].isascii()
            return n_before - n_held + error.start, has_utf8
        has_utf8 = has_utf8 or not text.isascii()
        n_before += len(data)
    return n_before, has_utf8


def _every_other_zero(head: bytes) -> bool:
    """Whether text has a zero byte beside every ASCII character, as in UTF-16 without a mark."""
    even, odd = head[0:1000:2], head[1:1000:2]
    n_zeros = max(even.count(0), odd.count(0))
    return len(head) > 3 and min(even.count(0), odd.count(0)) == 0 and 2 * n_zeros > len(even)


_UNDEFINED = bytes([0x00, 0x81, 0x8D, 0x8F, 0x90, 0x9D])
"""Bytes that cp1252 does not have, and zero, which no text has."""


def recoded(stream: BinaryIO, encoding: str) -> BinaryIO:
    """Return text of another encoding as a stream of UTF-8."""
    try:
        codecs.lookup(encoding)
    except LookupError:
        stream.close()
        raise FileError(
            f"encoding {encoding!r} is not known: use utf-8, cp1252, latin-1, utf-16, …"
        ) from None
    return cast(BinaryIO, io.BufferedReader(_Recoded(stream, encoding)))


class _Recoded(io.RawIOBase):
    """Text of another encoding, read as UTF-8; it goes back by beginning again, as gzip does."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream, self._encoding = stream, encoding
        self._begin()

    def _begin(self) -> None:
        self._stream.seek(0)
        self._decoder = codecs.getincrementaldecoder(self._encoding)()
        self._held, self._place, self._is_done = memoryview(b""), 0, False

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def seekable(self) -> bool:
        """Whether it can be read from another place."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer, and return the number of bytes."""
        while not self._held and not self._is_done:
            data = self._stream.read(_CHUNK)
            self._is_done = not data
            try:
                text = self._decoder.decode(data, final=self._is_done)
            except UnicodeError as error:
                raise FileError(
                    f"is not text in {self._encoding}: {error.args[-1]}: say another encoding"
                ) from None
            self._held = memoryview(text.encode())
        n = min(len(buffer), len(self._held))
        buffer[:n], self._held = self._held[:n], self._held[n:]
        self._place += n
        return n

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place, counted from the beginning."""
        if whence == io.SEEK_CUR:
            place += self._place
        if place < self._place:
            self._begin()
        while self._place < place:
            if not self.read(min(_CHUNK, place - self._place)):
                break
        return self._place

    def tell(self) -> int:
        """Return the place."""
        return self._place

    def close(self) -> None:
        """Close the file behind it."""
        self._stream.close()
        super().close()
