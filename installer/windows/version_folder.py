"""A version's folder, made on the machine that builds and checked on the one that installs: `files.txt` lists it.

`check.py` there is this file, `back.py` the way back, `command_path.py` puts the command on PATH. The installer runs
the first with the Python beside it, before anything points to that version:

    python\\python.exe -I check.py
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

MANIFEST = "files.txt"
CHECK = "check.py"
BACK = "back.py"
COMMAND_PATH = "command_path.py"
_LEFT_OUT = (MANIFEST, CHECK, BACK, COMMAND_PATH)


def write_manifest(folder: Path) -> None:
    """Write the hash of each file, and the programs that the setup runs beside them."""
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    lines = [f"{_sha256(folder / path)} {path}\n" for path in paths if path not in _LEFT_OUT]
    (folder / MANIFEST).write_text("".join(lines), encoding="utf-8", newline="\n")
    shutil.copyfile(__file__, folder / CHECK)
    for name in (BACK, COMMAND_PATH):
        shutil.copyfile(Path(__file__).with_name(name), folder / name)


def damaged_file(folder: Path) -> str:
    """Find the first file that is missing or differs; empty when all are as they were built."""
    for line in (folder / MANIFEST).read_text(encoding="utf-8").splitlines():
        expected, _, path = line.partition(" ")
        try:
            found = _sha256(folder / path)
        except OSError as error:
            return f"{path} cannot be read ({error.strerror})"
        if found != expected:
            return f"{path} differs from the file that was built"
    return ""


def open_window() -> None:
    """Import the window's modules and start Qt without a screen; raises where something is missing."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    import rankdeck

    sys.path.insert(0, str(Path(rankdeck.__file__).parent / "_internal"))
    from importlib import import_module

    from PySide6.QtWidgets import QApplication

    application = QApplication(sys.argv[:1])
    for name in ("app.main", "app.charts.plots_panel", "app.new_run.new_run_sheet", "core.cli.entry"):
        import_module(name)
    application.processEvents()


def main() -> int:
    """Print a fault in one line, if any; return 1 then."""
    try:
        damage = damaged_file(Path(__file__).resolve().parent)
        if damage:
            print(damage)
            return 1
        open_window()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    return 0


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
