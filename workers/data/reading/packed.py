"""Opens a data file as the bytes packed into it, and reports how far it has been read."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

from core.data.formats import Packing
from core.errors import PreflightError
from core.held_files import open_binary

_BUFFER_BYTES: Final = 1 << 18


@contextlib.contextmanager
def open_packed(path: Path, packing: Packing) -> Iterator[tuple[IO[bytes], Callable[[], int]]]:
    """The unpacked bytes of a file, and a function for the bytes of the file itself that have been read."""
    with open_binary(path, buffering=_BUFFER_BYTES) as raw, _unpacked(raw, packing) as stream:
        yield stream, raw.tell


def is_damage(error: Exception) -> bool:
    """Whether a packed file could not be read because its bytes are damaged or its end is missing."""
    if isinstance(error, OSError):
        # Gzip's and pyarrow's own; those of the system have a number.
        return error.errno is None
    zstd = sys.modules.get("compression.zstd")
    return isinstance(error, (EOFError, zlib.error)) or (zstd is not None and isinstance(error, zstd.ZstdError))


def _unpacked(raw: IO[bytes], packing: Packing) -> IO[bytes]:
    if packing == "gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="rb"))
    return _zstd(raw) if packing == "zst" else raw


def _zstd(raw: IO[bytes]) -> IO[bytes]:
    """Python 3.14's own module, else pyarrow; both raise at an end that is missing."""
    if sys.version_info >= (3, 14):
        module: Any = importlib.import_module("compression.zstd")
        return cast(IO[bytes], module.ZstdFile(raw, "rb"))
    try:
        import pyarrow
    except ImportError:
        raise PreflightError(
            "Reading .zst files needs the package pyarrow, which is not installed here.",
            "Install it: pip install pyarrow",
            title="A package is missing",
        ) from None
    return io.BufferedReader(pyarrow.CompressedInputStream(raw, "zstd"), _BUFFER_BYTES)
