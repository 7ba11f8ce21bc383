"""Makes the payload of the installer: Python, the window's packages and Rankdeck, the same bytes each time."""

from __future__ import annotations

import fnmatch
import hashlib
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from installer.windows.inputs import BuildError, sha256

SITE_PACKAGES: Final = PurePosixPath("Lib/site-packages")
# Top folders of the archives: python-build-standalone's, and NuGet's package.
_ROOTS: Final = ("python", "tools")
_ID_DIGITS: Final = 10


def unpack_python(source: Path, target: Path, left_out: Sequence[str]) -> None:
    """Unpack the archive, or copy the folder, without the excluded paths.

    Raises:
        BuildError: There is no `python.exe` in it, or it is neither a tar nor a zip file.
    """
    if source.is_dir():
        _copy_folder(source, target, left_out)
    elif tarfile.is_tarfile(source):
        with tarfile.open(source) as archive:
            for member in archive:
                path = _below_root(member.name)
                if member.isfile() and path is not None and not is_left_out(path, left_out):
                    stream = archive.extractfile(member)
                    assert stream is not None
                    with stream, _new_file(target, path).open("wb") as output:
                        shutil.copyfileobj(stream, output)
    elif zipfile.is_zipfile(source):
        _unzip(source, target, left_out, strip_root=True)
    else:
        raise BuildError(f"{source} is neither a folder, a tar nor a zip file.", "Give a file that inputs.toml names.")
    if not (target / "pythonw.exe").is_file():
        raise BuildError(f"There is no pythonw.exe in {source}.", "Give a complete Python for 64-bit Windows.")


def install_wheels(wheels: Iterable[Path], python: Path, left_out: Sequence[str]) -> None:
    """Unpack wheels into `python`'s packages, without the excluded paths.

    pip is not asked: with `--target` it writes programs that name the Python that built them.

    Raises:
        BuildError: A wheel has files for other places than site-packages.
    """
    for wheel in sorted(wheels):
        with zipfile.ZipFile(wheel) as archive:
            if elsewhere := [name for name in archive.namelist() if name.split("/")[0].endswith(".data")]:
                raise BuildError(f"{wheel.name} holds {elsewhere[0]}, which is not a package.", "Use another version.")
        _unzip(wheel, python / SITE_PACKAGES, left_out, strip_root=False)


def payload_files(folder: Path) -> list[PurePosixPath]:
    return sorted(PurePosixPath(path.relative_to(folder).as_posix()) for path in folder.rglob("*") if path.is_file())


def payload_id(folder: Path) -> str:
    """Name these bytes by some digits of the hash of all paths and contents."""
    digest = hashlib.sha256()
    for path in payload_files(folder):
        digest.update(f"{path} {sha256(folder / path)}\n".encode())
    return digest.hexdigest()[:_ID_DIGITS]


def is_left_out(path: PurePosixPath, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(str(path), pattern) for pattern in patterns)


def _copy_folder(source: Path, target: Path, left_out: Sequence[str]) -> None:
    for path in payload_files(source):
        if not is_left_out(path, left_out):
            shutil.copyfile(source / path, _new_file(target, path))


def _unzip(source: Path, target: Path, left_out: Sequence[str], *, strip_root: bool) -> None:
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            path = _below_root(member.filename) if strip_root else PurePosixPath(member.filename)
            if member.is_dir() or path is None or is_left_out(path, left_out):
                continue
            with archive.open(member) as stream, _new_file(target, path).open("wb") as output:
                shutil.copyfileobj(stream, output)


def _below_root(name: str) -> PurePosixPath | None:
    """A member's path below the archive's folder of Python; None for files beside it."""
    root, *rest = PurePosixPath(name).parts or ("",)
    return PurePosixPath(*rest) if rest and root in _ROOTS else None


def _new_file(folder: Path, path: PurePosixPath) -> Path:
    """Make the folder of a new file; raises `BuildError` for a path that leads out of it."""
    if path.is_absolute() or ".." in path.parts:
        raise BuildError(f"An input holds the path {path}, which leads out of its folder.", "Do not use that input.")
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        file.chmod(stat.S_IWRITE | stat.S_IREAD)
    return file
