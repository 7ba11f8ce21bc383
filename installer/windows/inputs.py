"""Inputs of the installer: reads `inputs.toml`, and checks files against the hashes in it."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from installer.console import SetupError

HERE: Final = Path(__file__).resolve().parent
WINDOW_PACKAGES: Final = HERE / "window-packages.txt"
_CHUNK: Final = 1 << 20


class BuildError(SetupError):
    def __init__(self, cause: str, next_step: str) -> None:
        super().__init__("The installer was not built", cause, next_step)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The contents of `inputs.toml`.

    Attributes:
        pythons: Names of files by their SHA-256.
        launcher: The requirement of the package that holds the launchers, `launcher_sha256` the hash of its wheel.
        left_out_of_python, left_out_of_packages: Patterns of paths.
    """

    pythons: dict[str, str]
    launcher: str
    launcher_sha256: str
    left_out_of_python: tuple[str, ...]
    left_out_of_packages: tuple[str, ...]


def read_inputs() -> Inputs:
    values = tomllib.loads((HERE / "inputs.toml").read_text(encoding="utf-8"))
    return Inputs(
        {python["sha256"]: python["file"] for python in values["python"]},
        values["launcher"]["requirement"],
        values["launcher"]["sha256"],
        tuple(values["leave_out"]["python"]),
        tuple(values["leave_out"]["packages"]),
    )


def check_python(python: Path, known: dict[str, str], *, unverified: bool) -> None:
    """Refuse a Python that is not one of the known files.

    Args:
        python: An archive, or the folder that holds `python.exe`. A folder has no hash of its own.
        known: Names of files by their SHA-256.
        unverified: Accept any, for tests.

    Raises:
        BuildError: It is missing, or not known.
    """
    if not python.exists():
        raise BuildError(f"There is no {python}.", "Download one of the files that inputs.toml names.")
    if unverified:
        return
    listed = "one of the files that inputs.toml names, or add --unverified for a test"
    if python.is_dir():
        raise BuildError(f"{python} is a folder, which cannot be checked against a hash.", f"Give {listed}.")
    found = sha256(python)
    if found not in known:
        raise BuildError(f"{python.name} has the SHA-256 {found}, which inputs.toml does not list.", f"Give {listed}.")


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
