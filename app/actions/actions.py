"""Actions of the window, each with its key, and the reason while it is unavailable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence

from app.style.icons import icon
from core.export import KINDS

if TYPE_CHECKING:
    from app.actions.available_actions import AvailableActions


class Actions(QObject):
    """The window's actions, which give the reason in their tooltip while they are unavailable."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.stop_is_now = False  # the next Stop ends the run at once
        self.start = self._action("&Start", "start", "Ctrl+Return", "Start training with these settings")
        self.start.setShortcuts([QKeySequence("Ctrl+Return"), QKeySequence("Ctrl+Enter")])
        self.stop = self._action("S&top", "stop", "Ctrl+.", "Save a checkpoint at the next step and stop")
        self.resume = self._action("R&esume…", "resume", "Ctrl+R", "Resume a run from its last checkpoint")
        self.resume_file = self._action(
            "Resume from state &file…", "file", "Ctrl+Shift+R", "Resume from a state file or a run's folder"
        )
        self.reload = self._action("Re&load", "replay", "F5", "Read this run and the list of runs again")
        self.rename = self._action("Re&name", "edit", "F2", "Rename this run")
        self.folder = self._action("Open the run's &folder", "folder", "", "Open this run's folder")
        self.copy_path = self._action("Cop&y path", "copy", "", "Copy the path of this run's folder")
        self.compare = self._action("Co&mpare runs…", "", "Ctrl+M", "Compare two to eight runs")
        self.exports = {
            kind: self._action(f"{title[0].upper()}{title[1:]}", "", "", f"Export this run: {title}")
            for kind, title in KINDS.items()
        }
        self.log = self._action("&Log", "file", "Ctrl+L", "Show the output of all processes")
        self.new_run = self._action("New r&un", "plus", "Ctrl+N", "Show or hide New run")
        self.new_run.setShortcuts([QKeySequence("Ctrl+N"), QKeySequence("F9")])
        self.new_run.setCheckable(True)
        self.find = self._action("Filter runs", "search", "Ctrl+F", "Filter the list of runs")
        self.palette = self._action("Search", "search", "Ctrl+K", "Search runs, settings and commands")
        self.theme = self._action("Light or dark", "theme", "", "Switch between light and dark")
        self.help = self._action("&Help", "help", "F1", "Show the documentation")
        self.settings = self._action("Sett&ings…", "settings", "Ctrl+,", "Theme, notifications, folders, updates")
        self.doctor = self._action(
            "C&heck this machine",
            "",
            "",
            "Check modes, GPUs, PyTorch and disk; run self-tests; save diagnostics",
        )
        self.environment = self._action(
            "Set up P&yTorch…", "", "", "Make an environment with PyTorch for training, or one with more packages"
        )
        self.about = self._action("&About Rankdeck", "", "", "Version, licences, links")

    def show_available(self, available: AvailableActions) -> None:
        if available.stop_is_now != self.stop_is_now:
            self.stop_is_now = available.stop_is_now
            self.stop.setText("S&top now" if self.stop_is_now else "S&top")
            self.stop.setIcon(icon("stop-now" if self.stop_is_now else "stop"))
        self.stop.setProperty("description", available.stop_tip)
        explain(self.start, available.start)
        explain(self.stop, available.stop)
        explain(self.resume, available.resume)
        explain(self.resume_file, available.resume)
        for action in (self.folder, self.copy_path, self.rename, self.log):
            explain(action, available.shown)
        for kind, action in self.exports.items():
            explain(action, available.exports[kind])

    def show_resume(self, *, trains_further: bool) -> None:
        """Name the action by its effect: a finished run trains further."""
        text = "Train furth&er…" if trains_further else "R&esume…"
        if text != self.resume.text():
            self.resume.setText(text)
            what = "Train this run for more steps" if trains_further else "Resume a run from its last checkpoint"
            self.resume.setProperty("description", what)
            explain(self.resume, None)

    def _action(self, text: str, sign: str, key: str, description: str) -> QAction:
        action = QAction(icon(sign), text, self) if sign else QAction(text, self)
        action.setShortcut(QKeySequence(key))
        action.setProperty("description", description)
        explain(action, None)
        return action


def explain(action: QAction, why_not: str | None) -> None:
    """Enable an action, or disable it with a reason; the tooltip holds its description, key and reason."""
    key = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
    description = str(action.property("description"))
    tip = f"{description} ({key})" if key else description
    action.setEnabled(why_not is None)
    action.setProperty("why_not", why_not or "")
    action.setToolTip(tip if why_not is None else f"{tip}\nUnavailable: {why_not}")
    action.setStatusTip("")
    action.setWhatsThis(tip)
