"""Sizes of wheels before they are downloaded: of the file, and of what is in it, read from its end alone.

A wheel is a zip file, whose last part lists its files and their sizes. A server that answers for parts of a file gives
that part, some kilobytes of gigabytes. What a server does not say stays unknown.
"""

from __future__ import annotations

import http.client
import io
import re
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from core.environments.pip_report import Wheel

TAIL: Final = 1 << 16
LIMIT_S: Final = 20.0
_AT_ONCE: Final = 8
_BLOCK: Final = 4096
"""Of NTFS and ext4."""
_BYTE_CODE: Final = 1.34
"""Bytes of byte code per byte of source, over the 12,147 modules of an environment with the extra `hf`."""
_PARTIAL: Final = 206
_LARGEST_LISTING: Final = 64 << 20
_BROKEN: Final = (OSError, http.client.HTTPException, zipfile.BadZipFile, ValueError)


@dataclass(frozen=True, slots=True)
class WheelSize:
    """How large a wheel is.

    Attributes:
        file: Its bytes; None where its server does not say.
        installed: Bytes that it takes on a drive, with the byte code that pip adds; None where that cannot be read.
        is_local: It lies on this machine.
    """

    file: int | None
    installed: int | None
    is_local: bool = False


def local_path(wheel: Wheel) -> Path | None:
    """Where a wheel lies on this machine; None for one on a server."""
    parts = urlsplit(wheel.url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def measure_all(wheels: Sequence[Wheel], cancelled: Callable[[], bool] = lambda: False) -> tuple[WheelSize, ...]:
    """The size of each; several servers' answers are waited for at the same time.

    Args:
        wheels: Which.
        cancelled: Asked before each; the rest is then unknown.
    """
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="wheel-size") as pool:
        return tuple(pool.map(lambda wheel: WheelSize(None, None) if cancelled() else measure(wheel), wheels))


def measure(wheel: Wheel) -> WheelSize:
    """The size of one; unknown where the server does not say."""
    path = local_path(wheel)
    if path is not None:
        try:
            with zipfile.ZipFile(path) as archive:
                return WheelSize(path.stat().st_size, _installed(archive), is_local=True)
        except _BROKEN:
            return WheelSize(None, None, is_local=True)  # pip will say what is wrong with it
    remote = _RemoteFile(wheel.url)
    try:
        remote.open()
        with zipfile.ZipFile(remote) as archive:
            return WheelSize(remote.size, _installed(archive))
    except _BROKEN:
        return WheelSize(remote.size, None)


def _installed(archive: zipfile.ZipFile) -> int:
    """Room on a drive, which is given in blocks; pip compiles each module."""
    found = 0
    for info in archive.infolist():
        found += _blocks(info.file_size)
        if info.filename.endswith(".py"):
            found += _blocks(int(_BYTE_CODE * info.file_size))
    return found


def _blocks(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


class _RemoteFile(io.RawIOBase):
    """A file on a server, of which only the parts that are read are transferred.

    Args:
        url: Where.

    Attributes:
        size: Its bytes; None while they are not known.
    """

    def __init__(self, url: str) -> None:
        self.size: int | None = None
        self._url = url
        self._at = 0
        self._part_from = 0
        self._part = b""

    def open(self) -> None:
        """Fetches the end of the file.

        Raises:
            OSError: The server does not answer.
            ValueError: It knows no parts; `size` is known all the same where it says so.
        """
        self._part_from = self._fetch(f"bytes=-{TAIL}")

    def _fetch(self, part: str) -> int:
        """Transfers a part; returns where it begins."""
        request = urllib.request.Request(self._url, headers={"Range": part, "Accept-Encoding": "identity"})
        try:
            answer = urllib.request.urlopen(request, timeout=LIMIT_S)
        except urllib.error.HTTPError as error:
            error.close()
            raise
        with answer:
            found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range") or "")
            if answer.status != _PARTIAL or found is None:
                length = answer.headers.get("Content-Length") or ""
                self.size = int(length) if length.isdigit() else None
                raise ValueError("the server knows no parts of files")
            self.size = int(found[2])
            self._part = answer.read(_LARGEST_LISTING)
        return int(found[1])

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size or 0}[whence]
        if start + offset < 0:
            raise OSError("before the beginning")
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = (self.size or 0) if size < 0 else min(self.size or 0, self._at + size)
        if end <= self._at:
            return b""
        if end - self._at > _LARGEST_LISTING:
            raise ValueError("too long for a list of files")
        if self._at < self._part_from or end > self._part_from + len(self._part):
            self._part_from = self._fetch(f"bytes={self._at}-{end - 1}")
        content = self._part[self._at - self._part_from : end - self._part_from]
        self._at = end
        return content
