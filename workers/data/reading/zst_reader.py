"""A zstd file as a readable stream, frame after frame, that notices when its end is missing."""

from __future__ import annotations

import io
from typing import IO, Any, Final

_READ_BYTES: Final = 1 << 17


class ZstReader(io.BufferedReader):
    """zstandard's own `stream_reader` takes a file that was cut off for one that is whole.

    Args:
        raw: The packed file; it is not closed with this.
        decompressor: A `zstandard.ZstdDecompressor`.
    """

    def __init__(self, raw: IO[bytes], decompressor: Any) -> None:
        super().__init__(_Frames(raw, decompressor), _READ_BYTES)


class _Frames(io.RawIOBase):
    def __init__(self, raw: IO[bytes], decompressor: Any) -> None:
        self._raw = raw
        self._decompressor = decompressor
        self._frame: Any = None
        self._packed = b""
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if not self._packed:
                self._packed = self._raw.read(_READ_BYTES)
                if not self._packed:
                    if self._frame is not None:
                        raise EOFError("The file ends in the middle of a frame")
                    return 0
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            self._ready = self._frame.decompress(self._packed)
            self._packed = b""
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
