"""The two programs that people start: small executables with the place of the Python that they run.

A launcher of distlib, as pip installs for each console script, reads what is appended to it: a line that names a
Python, and a zip file that this Python runs. `<launcher_dir>` in that line is the folder of the executable, so the
program's folder may lie anywhere. https://github.com/pypa/distlib
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_COMMAND: Final = "import sys\n\nfrom rankdeck.__main__ import main\n\nsys.exit(main())\n"
# A version that does not open leads back to the one before; the only one says why it does not open.
_WINDOW: Final = """\
import os
import sys
from pathlib import Path

try:
    from rankdeck.__main__ import main

    code = main()
except Exception as error:  # there is no console to print it
    code = 1
    own = Path(sys.prefix).parent
    others = [path for path in own.parent.iterdir() if path != own and (path / "launchers").is_dir()]
    if not others:
        import traceback

        log = Path(os.environ.get("LOCALAPPDATA") or own) / "Rankdeck" / "start-failed.txt"
        text = (
            f"Rankdeck did not start.\\n\\n{type(error).__name__}: {error}\\n\\nA file of it may be damaged, or held "
            f"back by an antivirus program. Look there, then start the setup again.\\n\\nDetails: {log}"
        )
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"{text}\\n\\n{traceback.format_exc()}", encoding="utf-8")
        try:
            import ctypes

            ctypes.windll.user32.MessageBoxW(None, text, "Rankdeck", 0x10 | 0x10000)  # MB_ICONSTOP | MB_SETFOREGROUND
        except (ImportError, AttributeError):
            os.startfile(log)
        sys.exit(1)
    import subprocess

    before = max(others, key=lambda path: path.stat().st_mtime)
    python = before / "python" / "pythonw.exe"
    subprocess.Popen([str(python), "-I", str(own / "back.py"), "--ask", f"{type(error).__name__}: {error}"])
sys.exit(code)
"""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Launcher:
    """One of the programs.

    Attributes:
        path: Its place below the program's folder.
        base: distlib's executable: `w64.exe` has no console.
        python: Its Python, in a version's folder, which runs `main`.
        up: From its folder to the program's.
    """

    path: str
    base: str
    python: str
    main: str
    up: str = ""


LAUNCHERS: Final = (
    Launcher("Rankdeck.exe", "w64.exe", "pythonw.exe", _WINDOW),
    Launcher(r"bin\rankdeck.exe", "t64.exe", "python.exe", _COMMAND, "..\\"),
)


def launcher_bytes(launcher: Launcher, wheel: Path, version_folder: str) -> bytes:
    """Make the executable from distlib's wheel; `version_folder` is a folder below `versions`."""
    with zipfile.ZipFile(wheel) as archive:
        executable = archive.read(f"distlib/{launcher.base}")
    # -I: neither the person's PYTHONPATH nor their packages are ours.
    python = rf"<launcher_dir>\{launcher.up}versions\{version_folder}\python\{launcher.python}"
    return executable + f"#!{python} -I\r\n".encode() + _zip_file(launcher.main)


def _zip_file(main: str) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _EPOCH), main)
    return output.getvalue()
