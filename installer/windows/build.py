"""Builds `Rankdeck-Setup-x.y.z.exe`, on Linux or Windows, from inputs with known hashes.

    python installer/windows/build.py --python FILE_OR_FOLDER --out DIR

Needs `makensis` (NSIS 3.08 or newer) and this Python's pip. Two builds of one commit from the same inputs and with the
same makensis are equal, byte by byte; a signature changes that.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from installer.windows.inputs import HERE, WINDOW_PACKAGES, BuildError, check_python, read_inputs, sha256
from installer.windows.launchers import LAUNCHERS, launcher_bytes
from installer.windows.payload import install_wheels, payload_files, payload_id, unpack_python
from installer.windows.version_folder import write_manifest

ROOT: Final = Path(__file__).resolve().parents[2]
SCRIPT: Final = HERE / "rankdeck.nsi"
ICON: Final = HERE.parents[1] / "resources" / "icons" / "app.ico"
WELCOME: Final = HERE / "welcome.bmp"
_KILOBYTE: Final = 1024
_PIP: Final = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "-q")
_FOR_WINDOWS: Final = ("--only-binary", ":all:", "--platform", "win_amd64", "--implementation", "cp")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        installer = build(options)
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    print(f"{installer} ({installer.stat().st_size / 1e6:.1f} MB)\nSHA-256 {sha256(installer)}")
    return 0


def build(options: argparse.Namespace) -> Path:
    """Make the payload in a temporary folder, and the installer from it; raises `BuildError`."""
    inputs = read_inputs()
    check_python(options.python, inputs.pythons, unverified=options.unverified)
    with tempfile.TemporaryDirectory(prefix="rankdeck-setup-") as name:
        work = Path(name)
        payload, wheels = work / "payload", work / "wheels"
        python = payload / "python"
        unpack_python(options.python, python, inputs.left_out_of_python)
        _download(wheels, python_version(python), options.wheels)
        _pip("wheel", "--no-deps", "-w", str(wheels), str(options.source), folder=options.wheels)
        install_wheels(wheels.glob("*.whl"), python, inputs.left_out_of_packages)
        launcher = _download_launcher(work / "launcher", inputs.launcher, inputs.launcher_sha256, options.wheels)
        version = rankdeck_version(options.source)
        folder = f"{version}-{payload_id(payload)}"
        for each in LAUNCHERS:
            path = payload.joinpath("launchers", *each.path.split("\\"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(launcher_bytes(each, launcher, folder))
        shutil.copyfile(ICON, payload / "rankdeck.ico")
        write_manifest(payload)
        options.out.mkdir(parents=True, exist_ok=True)
        return make_installer(
            payload, options.out / f"Rankdeck-Setup-{version}.exe", work, version, folder,
            makensis=options.makensis, sign=options.sign, fast=options.fast,
        )  # fmt: skip


def python_version(python: Path) -> str:
    """ "3.12", from the name of the runtime's library; raises `BuildError` without one."""
    for path in sorted(python.glob("python3*.dll")):
        if found := re.fullmatch(r"python3(\d+)\.dll", path.name):
            return f"3.{found[1]}"
    raise BuildError(f"There is no python3xx.dll in {python}.", "Give a complete Python for 64-bit Windows.")


def rankdeck_version(source: Path) -> str:
    text = (source / "core" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    assert found is not None
    return found[1]


def _download(target: Path, version: str, folder: Path | None) -> None:
    """Download the window's packages, each checked against its hash."""
    _pip(
        "download", "--no-deps", *_FOR_WINDOWS, "--python-version", version, "--require-hashes",
        "-r", str(WINDOW_PACKAGES), "-d", str(target), folder=folder,
    )  # fmt: skip


def _download_launcher(target: Path, requirement: str, expected: str, folder: Path | None) -> Path:
    _pip("download", "--no-deps", "--only-binary", ":all:", requirement, "-d", str(target), folder=folder)
    (wheel,) = target.glob("*.whl")
    if sha256(wheel) != expected:
        raise BuildError(f"{wheel.name} is not the file that inputs.toml names.", "Do not use it.")
    return wheel


def _pip(command: str, *arguments: str, folder: Path | None) -> None:
    source = [] if folder is None else ["--no-index", "--find-links", str(folder)]
    constraints = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")} if command == "wheel" else {}
    answer = subprocess.run(
        [*_PIP, command, *source, *arguments], env={**os.environ, **constraints, "SOURCE_DATE_EPOCH": "315532800"},
        cwd=ROOT, capture_output=True, encoding="utf-8", errors="replace", check=False,
    )  # fmt: skip
    if answer.returncode:
        lines = (answer.stderr or answer.stdout).strip().splitlines()
        raise BuildError(
            f"pip {command} failed: {lines[-1] if lines else 'no output'}", "Check the network, or --wheels."
        )


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


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description="Builds Rankdeck's installer for Windows.")
    add = made.add_argument
    add("--python", type=Path, required=True, metavar="FILE_OR_FOLDER", help="A file that inputs.toml names.")
    add("--out", type=Path, required=True, metavar="DIR", help="Where the installer is written.")
    add("--unverified", action="store_true", help="Accept a Python that inputs.toml does not list. For tests only.")
    add("--wheels", type=Path, metavar="DIR", help="Take wheels from this folder only, without a network.")
    add(
        "--sign", metavar="COMMAND", help="Signs a file; %%1 stands for its path. Called for uninstaller and installer."
    )
    add("--makensis", default="makensis", metavar="PROGRAM", help="NSIS's compiler. Default: the one on the path.")
    add("--fast", action="store_true", help="Compress less. For tests.")
    add("--source", type=Path, default=ROOT, metavar="DIR", help="Another checkout than this one.")
    return made


if __name__ == "__main__":
    sys.exit(main())
