"""Updates: one request a day to the address in Settings, and a notice that opens a newer version's page."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, QUrl, Signal

from app.settings import Settings
from app.widgets.notice_bar import Step
from app.widgets.open_outside import open_link
from core import __version__
from core.errors import RankdeckError, full_stop
from core.parsing import ParseError, parse_json

if TYPE_CHECKING:
    # The window opens without it: it brings TLS and an HTTP client along.
    from PySide6.QtNetwork import QNetworkReply

    from app.window.main_window import MainWindow

ADDRESS: Final = "update_address"
LAST_CHECK: Final = "update_check"
# About once a day, whenever the window is opened.
CHECK_EVERY_S: Final = 20 * 3600.0
# In all: a limit for each read alone lets a server that sends a letter now and then hold the check for ever.
ANSWER_LIMIT_MS: Final = 30_000
LARGEST_ANSWER_BYTES: Final = 256 * 1024
_RELEASE: Final = re.compile(r"\d{1,6}(?:\.\d{1,6}){1,3}")
_THIS_PC: Final = ("127.0.0.1", "localhost", "::1")


class UpdateError(RankdeckError):
    """An address or an answer that cannot be used."""

    title = "The check for updates failed"

    def __init__(self, cause: str, next_step: str = "Check the network and the address of updates.") -> None:
        super().__init__(cause, next_step)


class UpdatesController(QObject):
    """Asks nothing while no address is set.

    Signals:
        answered: The result of a check, as a line for Settings; empty: updates are off.
    """

    answered = Signal(str)

    def __init__(self, window: MainWindow, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window, self._settings = window, settings
        self._reply: QNetworkReply | None = None

    def open(self) -> None:
        """Check if a day has passed since the last check."""
        checked = self._settings.values(LAST_CHECK).get("checked", 0.0)
        since = time.time() - checked if isinstance(checked, int | float) else -1.0
        if self.address and not 0 <= since < CHECK_EVERY_S:  # also where the clock has been set back
            self.check()

    def close(self) -> None:
        """End a check that is under way."""
        if self._reply is not None:
            self._reply.abort()

    @property
    def address(self) -> str:
        """The update address; empty for none."""
        return self._settings.text(ADDRESS) or ""

    def set_address(self, text: str) -> None:
        """Keep an address and ask it at once; one that cannot be used is refused in Settings."""
        address = text.strip()
        try:
            if address:
                check_address(address)
        except UpdateError as error:
            self.answered.emit(f"✕ {error.cause} {error.next_step}")
            return
        self.close()
        self._settings.set_text(ADDRESS, address)
        self.answered.emit("Checking…" if address else "")
        if address:
            self.check()

    def check(self) -> None:
        """Send one GET without cookies, version or language."""
        from PySide6.QtNetwork import QNetworkAccessManager, QNetworkRequest

        if self._reply is not None:
            return
        request = QNetworkRequest(QUrl(self.address))
        for name, value in (
            (b"User-Agent", b"Rankdeck"),
            (b"Accept-Language", b"en"),
            (b"Accept-Encoding", b"identity"),
        ):
            request.setRawHeader(name, value)
        attribute = QNetworkRequest.Attribute
        request.setAttribute(attribute.CookieLoadControlAttribute, QNetworkRequest.LoadControl.Manual)
        request.setAttribute(attribute.RedirectPolicyAttribute, QNetworkRequest.RedirectPolicy.NoLessSafeRedirectPolicy)
        manager = QNetworkAccessManager(self)
        self._reply = reply = manager.get(request)
        reply.readyRead.connect(lambda: reply.abort() if reply.bytesAvailable() > LARGEST_ANSWER_BYTES else None)
        reply.finished.connect(lambda: self._on_answered(reply))
        reply.finished.connect(manager.deleteLater)
        limit = QTimer(reply, singleShot=True, interval=ANSWER_LIMIT_MS)
        limit.timeout.connect(reply.abort)
        limit.start()

    def _on_answered(self, reply: QNetworkReply) -> None:
        self._reply = None
        self._settings.set_values(LAST_CHECK, {"checked": time.time()})
        try:
            release, page = self._read(reply)
        except UpdateError as error:
            self.answered.emit(f"✕ {error.title}. {error.cause} {error.next_step}")
            return
        if not is_newer(release, __version__):
            self.answered.emit(f"Rankdeck {__version__} is the newest version.")
            return
        title = f"Rankdeck {release} is available"
        self.answered.emit(f"{title}.")
        step = Step("Open &page", lambda: open_link(QUrl(page), self._window.notice)) if page else None
        self._window.runs.notice.say("info", title, "", step)

    def _read(self, reply: QNetworkReply) -> tuple[str, str]:
        from PySide6.QtNetwork import QNetworkReply

        if reply.error() == QNetworkReply.NetworkError.OperationCanceledError:
            raise UpdateError(f"{reply.url().host()} did not answer in time, or sent too much.")
        if reply.error() != QNetworkReply.NetworkError.NoError:
            raise UpdateError(full_stop(reply.errorString()))
        return read_announcement(bytes(reply.readAll().data()), self.address)


def check_address(text: str) -> None:
    """Refuse an address that cannot be asked or opened.

    Raises:
        UpdateError: It is none, or its answer could be changed on the way.
    """
    url = QUrl(text, QUrl.ParsingMode.StrictMode)
    if not url.isValid():
        raise UpdateError(f"{text!r:.200} is not an address.", "Check it for typos.")
    if url.userInfo():
        raise UpdateError("The address holds a password.", "Enter it without one.")
    is_safe = url.scheme() == "https" or (url.scheme() == "http" and url.host() in _THIS_PC)
    if not is_safe or not url.host():
        cause = f"{text!r:.200} does not begin with https://, so its answer could be changed on the way."
        raise UpdateError(cause, "Enter an address that begins with https://.")


def read_announcement(data: bytes, address: str) -> tuple[str, str]:
    """Return the newest release, and the address of its page (empty: it has none).

    Raises:
        UpdateError: `data` is not an announcement (docs/windows.md describes it).
    """
    try:
        document = parse_json(data)
    except ParseError as error:
        raise UpdateError(f"The answer cannot be read: {error}.") from None
    if not isinstance(document, dict) or (document.get("format"), document.get("version")) != ("rankdeck-update", 1):
        raise UpdateError("The answer cannot be read: it is not an announcement of version 1.")
    release, page = document.get("release"), document.get("page", "")
    if not isinstance(release, str) or _RELEASE.fullmatch(release) is None or not isinstance(page, str):
        raise UpdateError("The answer cannot be read: it names no version such as 0.2.0.")
    if page:
        page = QUrl(address).resolved(QUrl(page)).toString()
        check_address(page)
    return release, page


def is_newer(release: str, than: str) -> bool:
    """Whether a release is newer than a version; what follows its numbers ("0.2.0.dev1") does not count."""
    return _numbers(release) > _numbers(than)


def _numbers(version: str) -> list[int]:
    found = _RELEASE.match(version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    return [*numbers, 0, 0, 0, 0][:4]
