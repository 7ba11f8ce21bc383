"""Downloads of wheels: resumed where they broke off, checked against their hashes."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final
from urllib.parse import urlsplit

from core.environments.pip_environment import certificate_fault, proxy_text
from core.environments.pip_report import Wheel
from core.errors import RankdeckError, sentences
from core.files.atomic import explained, replace_with_retry, sha256_file

TIMEOUT_S: Final = 30.0
ATTEMPTS: Final = 6
_LONGEST_PAUSE_S: Final = 20.0
_CHUNK: Final = 1 << 18
_PARTIAL: Final = 206
_RANGE_NOT_SATISFIABLE: Final = 416
_FINAL_STATUS: Final = (400, 401, 403, 404, 407, 410)

# Takes how many more bytes are there.
Report = Callable[[int], None]


class DownloadError(RankdeckError):
    """A file could not be downloaded; its first part is kept."""

    title = "The download stopped"


class CancelledError(Exception): ...


def download(wheel: Wheel, folder: Path, report: Report, cancelled: Callable[[], bool]) -> Path:
    """Download a wheel into a folder. A whole file that is there already is taken as it is.

    Args:
        report: Called with the number of bytes as they arrive, first with those that were there.
        cancelled: Asked as bytes arrive.

    Raises:
        DownloadError: The server cannot be reached after `ATTEMPTS`, or sent something else; the disk is full.
        CancelledError: `cancelled`.
    """
    target, part = folder / wheel.file_name, folder / f"{wheel.file_name}.part"
    if target.is_file() and sha256_file(target) == wheel.sha256:
        report(target.stat().st_size)
        return target
    with explained(f"{folder} could not be written"):
        folder.mkdir(parents=True, exist_ok=True)
    report(part.stat().st_size if part.is_file() else 0)
    _transfer_all(wheel, part, report, cancelled)
    if sha256_file(part) != wheel.sha256:
        with explained(f"{part} could not be removed"):
            part.unlink()
        raise DownloadError(
            f"{wheel.file_name} arrived, but differs from what the package index promised.",
            "Try again. If it differs again, a proxy or an antivirus program changes downloads.",
        )
    with explained(f"{target} could not be written"):
        replace_with_retry(part, target)
    return target


def _transfer_all(wheel: Wheel, part: Path, report: Report, cancelled: Callable[[], bool]) -> None:
    """Transfer the missing bytes, over as many connections as it takes while each brings some."""
    failures = 0
    while True:
        before = part.stat().st_size if part.is_file() else 0
        try:
            if _transfer(wheel, part, report, cancelled):
                return
            error: Exception = http.client.IncompleteRead(b"")
        except (
            urllib.error.URLError,
            http.client.HTTPException,
            TimeoutError,
            ConnectionError,
            ssl.SSLError,
        ) as caught:
            if getattr(caught, "code", None) in _FINAL_STATUS or _is_certificate(caught):
                raise _explained(wheel, caught) from caught
            _close(caught)
            error = caught
        now = part.stat().st_size if part.is_file() else 0
        failures = 0 if now > before else failures + 1
        if failures >= ATTEMPTS:
            raise _explained(wheel, error) from error
        _pause(min(_LONGEST_PAUSE_S, 0.5 * 2**failures), cancelled)


def _transfer(wheel: Wheel, part: Path, report: Report, cancelled: Callable[[], bool]) -> bool:
    """Use one connection; True once all has arrived."""
    there = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(wheel.url, headers={"Range": f"bytes={there}-"} if there else {})
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        # All of it was there already, or more than all.
        if error.code == _RANGE_NOT_SATISFIABLE:
            _close(error)
            return True
        raise
    with answer:
        continued = there > 0 and answer.status == _PARTIAL
        if there and not continued:
            # The server knows no ranges: from the beginning.
            report(-there)
        expected = int(answer.headers.get("Content-Length") or -1)
        with explained(f"{part} could not be written"):
            output = part.open("ab" if continued else "wb")
        with output:
            arrived = _copy(answer, output, report, cancelled)
    return expected < 0 or arrived == expected


def _copy(source: IO[bytes], output: IO[bytes], report: Report, cancelled: Callable[[], bool]) -> int:
    arrived = 0
    while chunk := source.read(_CHUNK):
        # Around writing alone: reading fails for other reasons.
        with explained(f"{output.name} could not be written"):
            output.write(chunk)
        arrived += len(chunk)
        report(len(chunk))
        if cancelled():
            raise CancelledError
    return arrived


def _pause(seconds: float, cancelled: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if cancelled():
            raise CancelledError
        time.sleep(0.1)


def _explained(wheel: Wheel, error: Exception) -> DownloadError:
    host = urlsplit(wheel.url).hostname or "the package index"
    _close(error)
    reason = getattr(error, "reason", None) or error
    if isinstance(error, urllib.error.HTTPError):
        step = "Sign in to your proxy, or ask who runs it." if error.code == 407 else "Try again later."
        return DownloadError(f"{host} answered {error.code} for {wheel.file_name}.", step)
    if isinstance(reason, ssl.SSLCertVerificationError):
        fault = certificate_fault(host, f"{reason.verify_message} {reason}")
        return DownloadError(fault.cause, fault.next_step)
    if isinstance(reason, socket.gaierror):
        cause = sentences(f"{host} was not found.", proxy_text(os.environ))
        return DownloadError(cause, "Check the network, or choose a folder of wheels.")
    return DownloadError(
        sentences(f"The connection to {host} broke, {ATTEMPTS} times in a row ({reason}).", proxy_text(os.environ)),
        "Check the network and a proxy, then try again; what has arrived is kept.",
    )


def _is_certificate(error: Exception) -> bool:
    """A certificate that is refused now will be refused the next time too."""
    return isinstance(getattr(error, "reason", None) or error, ssl.SSLCertVerificationError)


def _close(error: Exception) -> None:
    """Close the answer that an HTTP error holds."""
    if isinstance(error, urllib.error.HTTPError):
        error.close()


def copy_local(path: Path, folder: Path) -> Path:
    """Link a wheel of this machine into a folder, or copy it; raises `PreflightError`."""
    target, part = folder / path.name, folder / f"{path.name}.part"
    with explained(f"{path} could not be copied to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        try:
            os.link(path, part)
        except OSError:
            shutil.copyfile(path, part)
        # A copy that was cut short is never taken for the file.
        replace_with_retry(part, target)
    return target
