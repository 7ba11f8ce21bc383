"""The way back: puts the launchers of another version in place, and opens it.

`back.py` in a version's folder is this file:

    python\\python.exe -I back.py [--ask ERROR]

The version is the one whose Python runs this. It needs nothing but that Python: the other version may not start.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

KEY: Final = r"Software\Microsoft\Windows\CurrentVersion\Uninstall\Rankdeck"
LIMIT_S: Final = 60.0
POLL_S: Final = 0.25
# MB_YESNO | MB_ICONQUESTION | MB_SETFOREGROUND.
_QUESTION: Final = 0x4 | 0x20 | 0x10000
_STOP: Final = 0x10 | 0x10000  # MB_ICONSTOP | MB_SETFOREGROUND
_YES: Final = 6


def main(arguments: Sequence[str] | None = None) -> int:
    """Go back; return 1 if that was not possible, 2 if the person did not want to."""
    parser = argparse.ArgumentParser(description="Goes back to this version of Rankdeck.")
    parser.add_argument("--ask", metavar="ERROR", help="Ask first, and say why: the error of the other version.")
    options = parser.parse_args(arguments)
    folder = Path(sys.prefix).parent
    version = folder.name.rpartition("-")[0]
    question = f"Rankdeck could not be opened:\n\n{options.ask}\n\nGo back to version {version}?"
    if options.ask is not None and _message(question, _QUESTION) != _YES:
        return 2
    try:
        put_in_place(folder, LIMIT_S)
    except OSError as error:
        _message(f"Rankdeck {version} could not be put back: {error}. Close Rankdeck and start its setup.", _STOP)
        return 1
    _note(folder.name, version)
    if options.ask is not None:
        subprocess.Popen([str(folder.parents[1] / "Rankdeck.exe")], cwd=folder.parents[1])
    return 0


def put_in_place(folder: Path, limit_s: float) -> None:
    """Replace the launchers by those of a version, each in one step; one that runs is waited for. Raises `OSError`."""
    program, launchers = folder.parents[1], folder / "launchers"
    deadline = time.monotonic() + limit_s
    for source in sorted(path for path in launchers.rglob("*") if path.is_file()):
        target = program / source.relative_to(launchers)
        target.parent.mkdir(exist_ok=True)
        new = target.with_name(f"{target.name}.back")
        shutil.copyfile(source, new)
        while True:
            try:
                new.replace(target)
                break
            except OSError:
                if time.monotonic() > deadline:
                    new.unlink()
                    raise
            time.sleep(POLL_S)


def _note(name: str, version: str) -> None:
    """Name the version that starts in Windows' list of programs."""
    if sys.platform != "win32":
        return
    import winreg

    access = winreg.KEY_READ | winreg.KEY_WRITE
    with contextlib.suppress(OSError), winreg.OpenKey(winreg.HKEY_CURRENT_USER, KEY, 0, access) as key:
        left = str(winreg.QueryValueEx(key, "VersionFolder")[0])
        if left != name:
            winreg.SetValueEx(key, "PreviousFolder", 0, winreg.REG_SZ, left)
        winreg.SetValueEx(key, "VersionFolder", 0, winreg.REG_SZ, name)
        winreg.SetValueEx(key, "DisplayVersion", 0, winreg.REG_SZ, version)


def _message(text: str, kind: int) -> int:
    """Show a message box; print a line where there is an output, as in a terminal."""
    if sys.platform != "win32" or sys.stdout is not None:
        print(text, flush=True)
        return _YES
    import ctypes

    return int(ctypes.windll.user32.MessageBoxW(None, text, "Rankdeck", kind))


if __name__ == "__main__":
    sys.exit(main())
