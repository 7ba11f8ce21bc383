"""Python interpreters for scripts: this one, virtual environments, conda's, and Windows' ``py`` list.

Nothing is imported and, but for ``py -0p``, nothing is started: versions come from files of the environments, and
torch from the metadata in their packages' folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.program_search import find_program, run_hidden
from core.training_python import training_python

PY_LIMIT_S: Final = 5.0
_WINDOWS: Final = os.name == "nt"
_NAMES: Final = (".venv", "venv", "env", ".env")
_PARENTS_SEARCHED: Final = 3
_TORCH: Final = re.compile(r"torch-(\d[^-]*)\.(?:dist|egg)-info", re.IGNORECASE)
_PY_LINE: Final = re.compile(r"^\s*-V?:?(?P<tag>\S+)\s+\*?\s*(?P<path>[A-Za-z]:\\.*\.exe|/\S.*)$")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """One Python.

    Attributes:
        path: The program; the option `python` of the recipe `script` takes it.
        name: The environment's folder or conda name.
        version: "3.11.9"; empty where its files do not say.
        torch_version: None where torch is not installed there.
        is_own: It is the one that Rankdeck trains with.
    """

    path: Path
    name: str
    version: str = ""
    torch_version: str | None = None
    is_own: bool = False

    @property
    def text(self) -> str:
        python = f"Python {self.version}" if self.version else "Python"
        torch = f"torch {self.torch_version}" if self.torch_version else "no torch"
        return f"{self.name}: {python}, {torch}"


def find_interpreters(script: Path | None = None, environ: Mapping[str, str] | None = None) -> list[Interpreter]:
    """List the Pythons of this machine for a script, each once, the likeliest first.

    Takes some milliseconds; on Windows up to `PY_LIMIT_S`, so a window asks in a thread.

    Args:
        script: Environments beside it, or up to three folders above, come first.
    """
    environ = os.environ if environ is None else environ
    found: dict[str, Interpreter] = {}
    for path, name in _candidates(script, environ):
        key = os.path.normcase(os.path.abspath(path))  # noqa: PTH100 - a link is what makes it another environment
        if key not in found:
            with contextlib.suppress(OSError):
                found[key] = describe(path, name)
    return list(found.values())


def describe(path: Path, name: str = "") -> Interpreter:
    """Describe an interpreter as far as its files say; without a name it is called by its environment's folder."""
    prefix = path.parent if _WINDOWS and path.parent.name.lower() != "scripts" else path.parent.parent
    version = _version(prefix, path)
    is_own = path == training_python().executable
    return Interpreter(path, name or prefix.name or str(path), version, _torch_version(prefix, version), is_own)


def _candidates(script: Path | None, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if script is not None:
        yield from _beside(script)
    yield training_python().executable, "Rankdeck's own"
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = environ.get(variable, "").strip()
        if folder and (program := program_in(Path(folder))) is not None:
            yield program, environ.get("CONDA_DEFAULT_ENV", "") if variable == "CONDA_PREFIX" else ""
    for folder_path in _conda_environments():
        if (program := program_in(folder_path)) is not None:
            yield program, f"conda {folder_path.name}"
    yield from _installed(environ)


def _beside(script: Path) -> Iterator[tuple[Path, str]]:
    for folder in [script.absolute().parent, *script.absolute().parents][: _PARENTS_SEARCHED + 1]:
        for name in _NAMES:
            if (program := program_in(folder / name)) is not None:
                yield program, f"{folder.name}/{name}"


def program_in(folder: Path) -> Path | None:
    places = ("Scripts/python.exe", "python.exe", "bin/python.exe") if _WINDOWS else ("bin/python", "bin/python3")
    return next((folder / place for place in places if (folder / place).is_file()), None)


def _conda_environments() -> Iterator[Path]:
    """Environments in the list that conda and mamba keep."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for line in (Path.home() / ".conda" / "environments.txt").read_text(encoding="utf-8").splitlines():
            if line.strip():
                yield Path(line.strip())


def _installed(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if _WINDOWS:
        for path in parse_py_list(_ask_py()):
            if path.is_file():
                yield path, path.parent.name
        return
    for folder in filter(None, environ.get("PATH", "").split(os.pathsep)):
        for program in ("python3", "python"):
            path = Path(folder) / program
            if path.is_file():
                yield path, str(path)
                break


def _ask_py() -> str:
    program = find_program("py")
    if program is None:
        return ""
    try:
        return run_hidden([program, "-0p"], PY_LIMIT_S).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def parse_py_list(text: str) -> list[Path]:
    return [Path(found["path"].strip()) for line in text.splitlines() if (found := _PY_LINE.match(line))]


def _version(prefix: Path, path: Path) -> str:
    """The version by `pyvenv.cfg`, the headers, or at least the names of the folders."""
    if path == Path(sys.executable):
        return ".".join(map(str, sys.version_info[:3]))
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for line in (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            if name.strip() in ("version", "version_info"):
                found = re.match(r"\d+\.\d+(?:\.\d+)?", value.strip())
                if found:
                    return found[0]
    for header in (prefix / "include").glob("**/patchlevel.h"):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found = re.search(r'#define PY_VERSION\s+"([\d.]+)', header.read_text(encoding="utf-8"))
            if found:
                return found[1]
    resolved = re.search(r"python(\d+\.\d+)(?:\.exe)?$", str(path.resolve()))
    return resolved[1] if resolved else ""


def _torch_version(prefix: Path, version: str) -> str | None:
    numbers = ".".join(version.split(".")[:2])
    places = (
        f"lib/python{numbers}/site-packages",
        f"local/lib/python{numbers}/dist-packages",
        "lib/python3/dist-packages",
    )
    for place in ("Lib/site-packages",) if _WINDOWS else places:
        with contextlib.suppress(OSError), os.scandir(prefix / place) as entries:
            for entry in entries:
                found = _TORCH.fullmatch(entry.name)
                if found:
                    return found[1]
    return None
