"""pip's installation report: the files that it would install, and their sizes as far as their servers say.

https://pip.pypa.io/en/stable/reference/installation-report/
"""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from core.parsing import parse_json

ANSWER_LIMIT_S: Final = 20.0
_AT_ONCE: Final = 8
_SHA256: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Wheel:
    """A file to install.

    Attributes:
        url: Its address; `file:` for one on this machine.
        requires: Its requirements, a line each.
    """

    name: str
    version: str
    url: str
    sha256: str
    requires: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        """The wheel's own name, which tells pip its package and platform."""
        return PurePosixPath(unquote(urlsplit(self.url).path)).name

    @property
    def local_path(self) -> Path | None:
        """Its path on this machine; None for one on a server."""
        parts = urlsplit(self.url)
        return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


class ReportError(ValueError): ...


def parse_report(text: str) -> tuple[Wheel, ...]:
    """Read the wheels of a report.

    Raises:
        ReportError: It is not a report, or names a file without a hash, outside of an index, or with a path for a
            name.
    """
    try:
        document = parse_json(text)
        return tuple(_wheel(item) for item in document["install"])
    except (ValueError, TypeError, KeyError) as error:
        raise ReportError(f"pip's report could not be read ({type(error).__name__}: {error})") from error


def _wheel(item: dict[str, dict[str, object]]) -> Wheel:
    source, metadata = item["download_info"], item["metadata"]
    url, archive = source["url"], source["archive_info"]
    sha256 = _sha256(archive) if isinstance(archive, dict) else ""
    requires = metadata.get("requires_dist") or []
    lines = tuple(line for line in requires if isinstance(line, str)) if isinstance(requires, list) else ()
    wheel = Wheel(str(metadata["name"]), str(metadata["version"]), str(url), sha256, lines)
    if not _SHA256.fullmatch(wheel.sha256):
        raise ValueError(f"{wheel.name} has no SHA-256")
    if urlsplit(wheel.url).scheme not in ("https", "http", "file"):
        raise ValueError(f"{wheel.name} comes from {wheel.url!r:.80}")
    if not wheel.file_name.endswith(".whl") or "\\" in wheel.file_name:
        raise ValueError(f"{wheel.file_name!r:.80} is not a wheel")
    return wheel


def _sha256(archive: dict[str, object]) -> str:
    """The hash of a file; pip before 23.1 (Debian 12 has 23.0) writes ``"hash": "sha256=…"`` alone.

    https://packaging.python.org/en/latest/specifications/direct-url-data-structure/
    """
    hashes = archive.get("hashes")
    if isinstance(hashes, dict):
        return str(hashes.get("sha256", ""))
    kind, _, value = str(archive.get("hash", "")).partition("=")
    return value if kind == "sha256" else ""


def file_sizes(wheels: Sequence[Wheel], cancelled: Callable[[], bool] = lambda: False) -> tuple[int | None, ...]:
    """Ask servers for the bytes of each file, at the same time; None where one does not say, or once `cancelled`."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="wheel-size") as pool:
        return tuple(pool.map(lambda wheel: None if cancelled() else _file_size(wheel), wheels))


def _file_size(wheel: Wheel) -> int | None:
    path = wheel.local_path
    try:
        if path is not None:
            return path.stat().st_size
        request = urllib.request.Request(wheel.url, method="HEAD", headers={"Accept-Encoding": "identity"})
        with urllib.request.urlopen(request, timeout=ANSWER_LIMIT_S) as answer:
            length = answer.headers.get("Content-Length") or ""
            return int(length) if length.isdigit() else None
    except urllib.error.HTTPError as error:
        error.close()  # it holds its connection
        return None
    except (OSError, http.client.HTTPException, ValueError):
        return None
