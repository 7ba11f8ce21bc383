"""Updates: one quiet question a day, and the notice of a newer version, which opens its page in the browser."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, QUrl, Signal

from app.settings import Settings
from app.widgets.notice_bar import Step
from app.widgets.open_outside import open_link
from core import __version__
from core.errors import RankdeckError, full_stop, sentences

if TYPE_CHECKING:
    # The window opens without these: they bring TLS and an HTTP client along.
    from PySide6.QtNetwork import QNetworkReply

    from app.preferences.update_card import UpdateStatus
    from app.preferences.update_text import Announcement
    from app.window.main_window import MainWindow

ADDRESS: Final = "update_address"
LAST_CHECK: Final = "update_check"
# In all: a limit for each read alone lets a server that sends a letter now and then hold the check for ever.
ANSWER_LIMIT_MS: Final = 30_000
LARGEST_ANSWER_BYTES: Final = 256 * 1024
NEWS_LINES: Final = 3


class UpdatesController(QObject):
    """Asks nothing while no address is set.

    Signals:
        status_changed: The `UpdateStatus`: a check has ended, or another address was chosen.
    """

    status_changed = Signal(object)

    def __init__(self, window: MainWindow, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window, self._settings = window, settings
        self._reply: QNetworkReply | None = None

    def open(self) -> None:
        """Once the window is open: checks if a day has passed."""
        from app.preferences.update_text import check_from

        if self.address and check_from(self._settings.values(LAST_CHECK)).is_due(time.time()):
            self.check(gives_notice=True)

    def close(self) -> None:
        """Ends a check."""
        if self._reply is not None:
            self._reply.abort()

    @property
    def address(self) -> str:
        """The update address; empty for none."""
        return self._settings.text(ADDRESS) or ""

    def set_address(self, address: str) -> None:
        """Chooses another server; the last check was not its own."""
        self._settings.set_text(ADDRESS, address)
        self._settings.set_values(LAST_CHECK, {})
        self.status_changed.emit(self.status())

    def status(self) -> UpdateStatus:
        """The status that Settings shows."""
        from app.preferences.update_card import UpdateStatus
        from app.preferences.update_text import check_from, check_text, is_newer

        check = check_from(self._settings.values(LAST_CHECK))
        page = check.page if self.address and is_newer(check.release, __version__) else ""
        return UpdateStatus(self.address, check_text(check, __version__, time.time(), bool(self.address)), page)

    def check(self, *, gives_notice: bool = False) -> None:
        """Asks the server: one GET without cookies, version or language. What goes wrong is only told in Settings.

        Args:
            gives_notice: Tell of a newer version in the window too.
        """
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
        reply.finished.connect(lambda: self._on_answered(reply, gives_notice))
        reply.finished.connect(manager.deleteLater)
        limit = QTimer(reply, singleShot=True, interval=ANSWER_LIMIT_MS)
        limit.timeout.connect(reply.abort)
        limit.start()

    def open_page(self) -> None:
        """Opens the newer version's page in the browser."""
        page = self.status().page
        if page:
            open_link(QUrl(page), self._window.notice)

    def _on_answered(self, reply: QNetworkReply, gives_notice: bool) -> None:
        from PySide6.QtNetwork import QNetworkReply

        from app.preferences.update_text import UpdateCheck, UpdateError, is_newer, read_announcement

        self._reply = None
        found: Announcement | None = None
        try:
            if reply.error() != QNetworkReply.NetworkError.NoError:
                why = reply.errorString()
                if reply.error() == QNetworkReply.NetworkError.OperationCanceledError:
                    why = f"{reply.url().host()} did not answer in time, or sent too much"
                raise UpdateError(full_stop(why), "Check the network and the address of updates in Settings.")
            found = read_announcement(bytes(reply.readAll().data()), self.address)
        except RankdeckError as error:
            kept = UpdateCheck(time.time(), problem=sentences(f"{error.title}.", error.cause, error.window_step))
        else:
            kept = UpdateCheck(time.time(), found.release, found.page)
        self._settings.set_values(LAST_CHECK, asdict(kept))
        self.status_changed.emit(self.status())
        if found is not None and gives_notice and is_newer(found.release, __version__):
            step = Step("Open &page", self.open_page) if found.page else None
            news = "\n".join(found.news[:NEWS_LINES])
            self._window.runs.notice.say("info", f"Rankdeck {found.release} is available", news, step)
