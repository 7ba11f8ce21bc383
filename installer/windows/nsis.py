"""Compiles `rankdeck.nsi` with a payload."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path, PurePosixPath
from typing import Final

from installer.windows.inputs import HERE, BuildError
from installer.windows.payload import payload_files

SCRIPT: Final = HERE / "rankdeck.nsi"
ICON: Final = HERE.parents[1] / "resources" / "icons" / "app.ico"
WELCOME: Final = HERE / "welcome.bmp"
_KILOBYTE: Final = 1024


def make_installer(
    payload: Path, output: Path, work: Path, version: str, folder: str, *, makensis: str, sign: str | None, fast: bool
) -> Path:
    """Compile the installer.

    Args:
        payload: The contents of a version's folder.
        work: A folder for generated files.
        folder: The name of the version's folder.
        makensis: The compiler.
        sign: A command that signs the file `%1`.
        fast: Compress less.

    Raises:
        BuildError: There is no makensis, or it failed.
    """
    program = shutil.which(makensis)
    if program is None:
        raise BuildError(f"{makensis} was not found.", "Install NSIS 3.08 or newer (Debian: apt-get install nsis).")
    listing = work / "payload.nsh"
    listing.write_text(file_commands(payload), encoding="utf-8", newline="\n")
    kilobytes = sum((payload / path).stat().st_size for path in payload_files(payload)) // _KILOBYTE
    numbers = [part for part in version.split("+")[0].split(".") if part.isdigit()]
    defines = {
        "VERSION": version,
        "VERSION_NUMBERS": ".".join([*numbers, "0", "0", "0"][:4]),
        "FOLDER": folder,
        "PAYLOAD": str(listing),
        "SIZE_KB": str(kilobytes),
        "ICON": str(ICON),
        "WELCOME": str(WELCOME),
        "OUTPUT": str(output),
        **({"FAST": "1"} if fast else {}),
        **({"SIGN": sign} if sign else {}),
    }
    options = ("-V2", "-WX", "-INPUTCHARSET", "UTF8", *(f"-D{name}={value}" for name, value in defines.items()))
    answer = subprocess.run(
        [program, *options, str(SCRIPT)], capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if answer.returncode:
        output.unlink(missing_ok=True)  # it may be whole, and not signed
        tail = "\n".join(answer.stdout.strip().splitlines()[-12:])
        raise BuildError(f"makensis ended with code {answer.returncode}:\n{tail}", "See the lines above.")
    return output


def file_commands(payload: Path) -> str:
    """Write a `File` line for each file, sorted: `File /r` takes them in the order of the file system."""
    lines: list[str] = []
    folder: PurePosixPath | None = None
    for path in payload_files(payload):
        if path.parent != folder:
            folder = path.parent
            below = "" if folder == PurePosixPath() else "\\" + str(folder).replace("/", "\\")
            lines.append(f'SetOutPath "$INSTDIR\\versions\\${{FOLDER}}.partial{_escaped(below)}"')
        lines.append(f'File "{_escaped(str(payload / path))}"')
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("$", "$$")
