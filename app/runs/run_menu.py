"""Context menu of the chosen runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from app.runs.run_row import RunRow, is_live
from app.style.icons import icon
from core.export import KINDS

MIN_COMPARED: Final = 2
MAX_COMPARED: Final = 8
IS_LIVE: Final = "It is running. Stop it first."


@dataclass(frozen=True, slots=True)
class RunIntents:
    """Actions of the menu's entries, each for the chosen runs or for the only one."""

    open: Callable[[Path], object]
    resume: Callable[[Path], object]
    rename: Callable[[Path], object]
    pin: Callable[[Sequence[Path], bool], object]
    tag: Callable[[Sequence[RunRow]], object]
    note: Callable[[RunRow], object]
    compare: Callable[[Sequence[Path]], object]
    export: Callable[[Path, str], object]
    show_folder: Callable[[Path], object]
    copy_text: Callable[[str], object]
    copy_settings: Callable[[Path], object]
    remove: Callable[[Sequence[Path]], object]


def run_menu(parent: QWidget, rows: Sequence[RunRow], shown: Path | None, intents: RunIntents) -> QMenu:
    """Make the menu of these rows; entries for one run only are left out for several."""
    menu = QMenu(parent, toolTipsVisible=True)
    paths, first = [row.path for row in rows], rows[0]
    path, is_one = first.path, len(rows) == 1
    if is_one:
        menu.setDefaultAction(_entry(menu, "&Open", lambda: intents.open(path), key="Return"))
        live = IS_LIVE if is_live(first.entry) else ""
        _entry(menu, "R&esume…", lambda: intents.resume(path), sign="resume", why_not=live)
        menu.addSeparator()
        _entry(menu, "&Rename", lambda: intents.rename(path), key="F2")
    is_pinned = all(row.record.notes.pinned for row in rows)
    _entry(menu, "Un&pin" if is_pinned else "&Pin", lambda: intents.pin(paths, not is_pinned), sign="pin")
    _entry(menu, "&Tags…", lambda: intents.tag(rows))
    if is_one:
        _entry(menu, "&Note…", lambda: intents.note(first))
    menu.addSeparator()
    compared, why_not = compared_runs(paths, shown)
    with_shown = is_one and not why_not
    title = "Co&mpare with the shown run" if with_shown else "Co&mpare"
    _entry(menu, title, lambda: intents.compare(compared), why_not=why_not)
    if is_one:
        _add_exports(menu, path, intents)
        menu.addSeparator()
        _entry(menu, "Show in &folder", lambda: intents.show_folder(path), sign="folder")
        _entry(menu, "&Copy path", lambda: intents.copy_text(str(path)), sign="copy")
        _entry(menu, "Copy &id", lambda: intents.copy_text(path.name))
        _entry(menu, "Copy &settings to New run", lambda: intents.copy_settings(path))
    menu.addSeparator()
    why_kept = removal_refusal(rows)
    _entry(menu, "Move to the recycle &bin", lambda: intents.remove(paths), key="Del", sign="bin", why_not=why_kept)
    return menu


def compared_runs(chosen: Sequence[Path], shown: Path | None) -> tuple[list[Path], str]:
    """Return the chosen runs, or a single one with the shown, and why they cannot be compared."""
    paths = list(chosen)
    if len(paths) == 1 and shown is not None and shown != paths[0]:
        paths.insert(0, shown)
    if MIN_COMPARED <= len(paths) <= MAX_COMPARED:
        return paths, ""
    return paths, f"Choose {MIN_COMPARED} to {MAX_COMPARED} runs in the list with Ctrl+click or Shift+click."


def removal_refusal(rows: Sequence[RunRow]) -> str:
    """Why runs cannot be removed; empty where they can."""
    live = [row.record.label for row in rows if is_live(row.entry)]
    if not live:
        return ""
    return IS_LIVE if len(rows) == 1 else f"{live[0]} is running. Stop it first."


def _add_exports(menu: QMenu, path: Path, intents: RunIntents) -> None:
    exports = QMenu("E&xport", menu, toolTipsVisible=True)
    for kind, title in KINDS.items():
        _entry(exports, f"{title[0].upper()}{title[1:]}", functools.partial(intents.export, path, kind))
    menu.addMenu(exports)


def _entry(
    menu: QMenu, text: str, act: Callable[[], object], *, key: str = "", sign: str = "", why_not: str = ""
) -> QAction:
    """Add an entry; its key is only shown, the list itself listens to it."""
    action = menu.addAction(icon(sign), text) if sign else menu.addAction(text)
    if key:
        action.setShortcut(QKeySequence(key))
        action.setShortcutVisibleInContextMenu(True)
    action.setEnabled(not why_not)
    action.setToolTip(f"Unavailable: {why_not}" if why_not else "")
    action.triggered.connect(lambda: act())
    return action
