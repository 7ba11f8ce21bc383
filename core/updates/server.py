"""Server of updates: one GET that tells nothing of this PC, and the download of a setup, checked and bounded."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import shutil
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

from core.errors import full_stop
from core.files.atomic import explained, replace_with_retry, sha256_file
from core.formatting import byte_size
from core.held_files import open_binary, remove_file
from core.paths import data_folder
from core.updates.announcement import Announcement, Setup, UpdateError, check_address, read_announcement

READ_LIMIT_S: Final = 15.0
ANSWER_LIMIT_S: Final = 30.0
DOWNLOAD_LIMIT_S: Final = 3 * 3600.0
LARGEST_ANSWER_BYTES: Final = 256 * 1024
SPARE_BYTES: Final = 64 << 20
"""Stays free on the drive."""
USER_AGENT: Final = "Rankdeck"
"""Without it Python would send its own version."""
_CHUNK: Final = 1 << 16
_FAILURES: Final = (OSError, http.client.HTTPException, ValueError)
_NO_CHECK: Final = "The check for updates failed"

Report = Callable[[int], None]
"""Takes how many bytes have arrived."""


class StoppedError(Exception):
    """The person has stopped it."""


def ask(address: str) -> Announcement:
    """What the server announces.

    Raises:
        UpdateError: The address cannot be used, the server cannot be reached, or its answer cannot be read.
    """
    address = check_address(address)
    data = bytearray()
    try:
        with _open(address, ANSWER_LIMIT_S) as answer:
            while chunk := answer.read1(_CHUNK):
                data += chunk
                if len(data) > LARGEST_ANSWER_BYTES:
                    step = "Check the address of updates in Settings."
                    raise UpdateError("The answer is too long for an announcement.", step, title=_NO_CHECK)
    except _FAILURES as error:
        raise _explained(address, error, _NO_CHECK) from None
    return read_announcement(bytes(data), address)


def download(announcement: Announcement, folder: Path, report: Report, stopped: Callable[[], bool]) -> Path:
    """Brings the setup of a release into a folder, in place of earlier ones. One that is there and whole is taken.

    Args:
        announcement: Names it.
        folder: Where to.
        report: Called as bytes arrive.
        stopped: Asked as bytes arrive.

    Returns:
        The file.

    Raises:
        UpdateError: The server cannot be reached or sends something else, or the disk is full. Nothing is left.
        StoppedError: `stopped`.
    """
    setup = announcement.setup
    assert setup is not None
    target = folder / f"Rankdeck-Setup-{announcement.release}.exe"
    if target.is_file() and target.stat().st_size == setup.bytes and sha256_file(target) == setup.sha256:
        return target
    with explained(f"{folder} could not be written"):
        folder.mkdir(parents=True, exist_ok=True)
        for earlier in folder.glob("Rankdeck-Setup-*"):
            remove_file(earlier)
    if shutil.disk_usage(folder).free < setup.bytes + SPARE_BYTES:
        raise UpdateError(f"The setup has {byte_size(setup.bytes)}; {folder} has no room for it.", "Free some space.")
    part = target.with_suffix(".part")
    try:
        _transfer(setup, part, report, stopped)
        replace_with_retry(part, target)  # an antivirus program may be reading it
    except _FAILURES as error:
        raise _explained(setup.url, error, UpdateError.title) from None
    finally:
        with contextlib.suppress(OSError):  # a scanner holds it: the next download begins with removing it
            part.unlink(missing_ok=True)
    return target


def setup_folder() -> Path:
    """Where setups are downloaded to: only this user can write there."""
    return data_folder() / "updates"


def _transfer(setup: Setup, part: Path, report: Report, stopped: Callable[[], bool]) -> None:
    digest, arrived = hashlib.sha256(), 0
    with _open(setup.url, DOWNLOAD_LIMIT_S) as answer, _new_file(part) as output:
        while arrived <= setup.bytes and (chunk := answer.read1(_CHUNK)):
            with explained(f"{part} could not be written"):
                output.write(chunk)
            digest.update(chunk)
            arrived += len(chunk)
            report(arrived)
            if stopped():
                raise StoppedError
    if arrived != setup.bytes or digest.hexdigest() != setup.sha256:
        size = "more" if arrived > setup.bytes else byte_size(arrived)
        raise UpdateError(
            f"What arrived is not the setup that was announced ({size} of {byte_size(setup.bytes)}, another hash).",
            "Try again. If it differs again, a proxy or an antivirus program changes downloads.",
        )


def _new_file(path: Path) -> IO[bytes]:
    with explained(f"{path} could not be written"):
        return open_binary(path, "wb")


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to another address only if that one may be asked too."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        try:
            check_address(newurl)
        except UpdateError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Connections(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Connections whose sockets are known from the first moment on, so that another thread can end them."""

    def __init__(self) -> None:
        urllib.request.HTTPSHandler.__init__(self)
        self.sockets: list[socket.socket] = []

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._known(http.client.HTTPConnection), req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._known(http.client.HTTPSConnection), req)

    def end(self) -> None:
        """Ends them, whatever they wait for: a handshake, a header, the answer."""
        for one in self.sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close_all(self) -> None:
        for one in self.sockets:
            one.close()

    def _known(self, base: type[http.client.HTTPConnection]) -> type[http.client.HTTPConnection]:
        sockets = self.sockets

        class Connection(base):  # type: ignore[misc, valid-type]  # one of two
            def __setattr__(self, name: str, value: Any) -> None:
                if name == "sock" and type(value) is socket.socket:  # before its TLS handshake
                    sockets.append(value.dup())
                super().__setattr__(name, value)

        return Connection


@contextlib.contextmanager
def _open(url: str, limit_s: float) -> Iterator[http.client.HTTPResponse]:
    """A GET with nothing but the host's name and `USER_AGENT`; no cookies, no credentials.

    Raises:
        TimeoutError: It took longer than `limit_s` in all. A limit for each read alone lets a server that sends a
            letter now and then hold the check for ever.
        OSError, HTTPException, ValueError: As `urllib`.
    """
    connections, is_over = _Connections(), threading.Event()

    def end() -> None:
        is_over.set()
        connections.end()

    opener = urllib.request.build_opener(_SafeRedirects, connections)
    opener.addheaders = [("User-Agent", USER_AGENT)]
    timer = threading.Timer(limit_s, end)
    timer.daemon = True
    timer.start()
    try:
        with opener.open(url, timeout=READ_LIMIT_S) as answer:
            yield answer
        if is_over.is_set():
            raise TimeoutError
    except _FAILURES as error:
        raise TimeoutError if is_over.is_set() else error from None
    finally:
        timer.cancel()
        timer.join()
        connections.close_all()


def _explained(url: str, error: Exception, title: str) -> UpdateError:
    host = urlsplit(url).hostname or "the server"
    reason = getattr(error, "reason", None) or error
    if isinstance(error, urllib.error.HTTPError):
        error.close()  # it holds its connection
        return UpdateError(f"{host} answered {error.code}.", "Check the address of updates in Settings.", title=title)
    if isinstance(reason, ssl.SSLCertVerificationError):
        cause = f"The certificate of {host} was not accepted: {full_stop(reason.verify_message)}"
        return UpdateError(cause, "Check the date of this PC.", title=title)
    if isinstance(reason, socket.gaierror):
        return UpdateError(f"{host} was not found.", "Check the network and the address.", title=title)
    if isinstance(reason, TimeoutError):
        return UpdateError(f"{host} did not answer in time.", "Try again later.", title=title)
    return UpdateError(f"The connection to {host} broke ({reason}).", "Check the network, then try again.", title=title)
