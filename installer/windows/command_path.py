"""The command `rankdeck` on this person's PATH: `command_path.py add|remove FOLDER`.

NSIS itself would cut a long PATH at its longest string. It needs nothing but the Python of a version.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

KEY: Final = "Environment"
NAME: Final = "Path"
_BROADCAST: Final = 0xFFFF  # HWND_BROADCAST
_SETTING_CHANGE: Final = 0x1A  # WM_SETTINGCHANGE
_ABORT_IF_HUNG: Final = 2  # SMTO_ABORTIFHUNG
_LIMIT_MS: Final = 2000


def with_folder(path: str, folder: str) -> str:
    """Append a folder to a PATH; unchanged where it is there already."""
    return path if _is_in(path, folder) else ";".join([*filter(None, [path.rstrip(";")]), folder])


def without_folder(path: str, folder: str) -> str:
    """Remove a folder from a PATH; all else stays as it was, also empty parts."""
    if not _is_in(path, folder):
        return path
    return ";".join(part for part in path.split(";") if not _is_same(part, folder))


def _is_in(path: str, folder: str) -> bool:
    return any(_is_same(part, folder) for part in path.split(";"))


def _is_same(part: str, folder: str) -> bool:
    return part.strip().strip('"').rstrip("\\").casefold() == folder.rstrip("\\").casefold()


def main(arguments: list[str]) -> int:
    """Change the person's own PATH in its present form, and tell open programs."""
    if sys.platform != "win32":
        return 2
    import winreg

    action, folder = arguments
    with winreg.CreateKeyEx(winreg.HKEY_CURRENT_USER, KEY, 0, winreg.KEY_READ | winreg.KEY_WRITE) as key:
        try:
            before, form = winreg.QueryValueEx(key, NAME)
        except FileNotFoundError:
            before, form = "", winreg.REG_EXPAND_SZ
        after = with_folder(before, folder) if action == "add" else without_folder(before, folder)
        if after == before:
            return 0
        winreg.SetValueEx(key, NAME, 0, form, after)
    ctypes.windll.user32.SendMessageTimeoutW(
        _BROADCAST, _SETTING_CHANGE, 0, KEY, _ABORT_IF_HUNG, _LIMIT_MS, ctypes.byref(ctypes.c_ulong())
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
