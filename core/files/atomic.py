"""Files that are whole or not there: atomic replacement, hashing, and errors for a failed disk."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, cast

from core.errors import FileInUseError, NewerVersionError, PreflightError, RankdeckError, StateFileError
from core.fault_points import reach
from core.files.cloud import CLOUD_ERRORS
from core.files.long_paths import is_too_long
from core.files.private import make_private
from core.held_files import IN_USE, NotRegularError, is_sharing_violation, open_binary, retried
from core.parsing import ParseError, decode_utf8, parse_json, type_text
from core.paths import typed_path

REPLACE_TIMEOUT_S: Final = 5.0
# A ledger of a million chunks has 150 MB. What is larger is some other file.
MAX_STATE_BYTES: Final = 256 << 20
_COPY_BYTES: Final = 1 << 20
_TEMPORARY_SUFFIX: Final = ".rankdeck-tmp"
# Not sys.platform, so that the checker reads both branches on either system.
_WINDOWS: Final = os.name == "nt"
# ERROR_PATH_NOT_FOUND, INVALID_DRIVE, NOT_READY, BAD_NETPATH, BAD_NET_NAME
_WINDOWS_NO_DRIVE: Final = (3, 15, 21, 53, 67)


def parse_path(text: str) -> Path | None:
    """Make a path of a person's text; None where no file can have such a name (too long, a zero byte)."""
    try:
        path = typed_path(text)
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return path
    except (OSError, ValueError):
        return None
    return path


def write_atomic(
    path: Path,
    data: bytes | str | Callable[[IO[bytes]], None],
    *,
    mode: int | None = None,
    durable: bool = True,
    timeout_s: float = REPLACE_TIMEOUT_S,
) -> None:
    """Replace `path` by `data` so that a reader, or a power cut, sees the old content or the new, never a part.

    Args:
        path: The file, in a folder that exists.
        data: Text is written as UTF-8 with its line ends as they are. A function writes what is too large for memory.
        mode: Permission bits of the new file; None leaves them to the umask. Bits that shut out everybody else
            (0o600) hold on Windows too, by an access list.
        durable: False skips fsync, for files that can be derived again.
        timeout_s: The longest wait, on Windows, for others to close the file.

    Raises:
        PreflightError: Disk full, no permission, path too long, drive missing.
        RankdeckError: Any other failure of the disk.
    """
    temporary = path.with_name(f".{path.name[:80]}.{secrets.token_hex(6)}{_TEMPORARY_SUFFIX}")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
        with os.fdopen(os.open(temporary, flags, 0o666 if mode is None else mode), "wb") as file:
            if mode is not None and not mode & 0o077:
                # A drive without access lists cannot keep a file private.
                with contextlib.suppress(OSError):
                    make_private(temporary)
            if callable(data):
                data(file)
            else:
                file.write(data.encode("utf-8") if isinstance(data, str) else data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        reach(f"replace:{path.parent.name}/{path.name}")
        replace_with_retry(temporary, path, timeout_s=timeout_s)
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        raise explain(error, f"{path} could not be written") from error
    finally:
        # Replaced already, or the disk that failed fails again.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def copy_atomic(source: Path, target: Path) -> None:
    """Copy a file's bytes to `target`, which is replaced whole; raises as `write_atomic`."""

    def fill(file: IO[bytes]) -> None:
        with open_binary(source) as original:
            shutil.copyfileobj(original, file, _COPY_BYTES)

    write_atomic(target, fill)


def replace_with_retry(source: Path, target: Path, *, timeout_s: float = REPLACE_TIMEOUT_S) -> None:
    """Replace `target`, waiting up to `timeout_s` for other programs to close it on Windows; raises `OSError`."""
    retried(lambda: source.replace(target), timeout_s)


def sync_folder(folder: Path) -> None:
    """Make names that were created or replaced in `folder` survive a power cut (POSIX; Windows has no such call)."""
    if _WINDOWS:
        return
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and FUSE file systems cannot sync a folder; the file itself is synced.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise
    finally:
        os.close(descriptor)


def remove_temporaries(folder: Path, *, others: Sequence[str] = ()) -> None:
    """Remove unfinished replacements of a killed writer in `folder`; only its single writer may call it.

    Those of the files `others` stay: another process may be about to put them in place.
    """
    for leftover in folder.glob(f".*{_TEMPORARY_SUFFIX}"):
        if any(leftover.name.startswith(f".{name}.") for name in others):
            continue
        # A scanner holds it: the next start removes it.
        with contextlib.suppress(OSError):
            leftover.unlink()  # not waited for


def read_bytes(path: Path, *, limit_bytes: int = MAX_STATE_BYTES) -> bytes:
    """Read a file.

    Raises:
        FileInUseError: Another program holds it, and still did after two seconds.
        StateFileError: It is missing, unreadable, larger than the limit, or no regular file.
    """
    try:
        return retried(lambda: _read_regular(path, limit_bytes))
    except FileNotFoundError:
        raise StateFileError(f"{path} does not exist.", "Check the path.") from None
    except ValueError:  # a zero byte, or half a character
        raise StateFileError(f"{str(path)!r} is not a valid file name.", "Check the path.") from None
    except OSError as error:
        refusal = explain(error, f"{path} could not be read")
        what = FileInUseError if is_sharing_violation(error) else StateFileError
        raise what(refusal.cause, refusal.next_step) from error


def _read_regular(path: Path, limit_bytes: int) -> bytes:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise StateFileError(f"{path} is a folder, not a file.", "Name the file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise StateFileError(f"{path} is not a regular file.", "Check that this is the right file.")
    if status.st_size > limit_bytes:
        raise StateFileError(
            f"{path} is too large: {status.st_size:,} bytes, and at most {limit_bytes:,} are read.",
            "Check that this is the right file.",
        )
    return path.read_bytes()


def read_text(path: Path, *, limit_bytes: int = MAX_STATE_BYTES) -> str:
    """Read a UTF-8 file; raises as `read_bytes`."""
    data = read_bytes(path, limit_bytes=limit_bytes)
    try:
        return decode_utf8(data).removeprefix("\ufeff")
    except ParseError as error:
        raise StateFileError(
            f"{path} cannot be read: {error}.", "Save it as UTF-8, or check that this is the right file."
        ) from None


def read_json(path: Path, *, limit_bytes: int = MAX_STATE_BYTES) -> Any:
    """Read a JSON file, within the limits of `core.parsing`; raises `StateFileError` with the place of a mistake."""
    text = read_text(path, limit_bytes=limit_bytes)
    if not text.strip():
        raise StateFileError(f"{path} is empty.", "Use a copy of it from before.")
    try:
        return parse_json(text)
    except ParseError as error:
        what = "was cut off" if error.cut_off else "cannot be read as JSON"
        raise StateFileError(
            f"{path} {what}: {error}.",
            "Use a copy of it from before, or check that this is the right file.",
        ) from None


def require_format(document: Any, path: Path, name: str, version: int) -> dict[str, Any]:
    """Return `document` if its `format` is `name` and its `version` is not newer than `version`.

    Raises:
        NewerVersionError: A newer Rankdeck wrote it.
        StateFileError: It is something else.
    """
    if not isinstance(document, Mapping):
        raise StateFileError(
            f"{path} holds {type_text(document)} instead of an object.", "Check that this is the right file."
        )
    found, number = document.get("format"), document.get("version")
    if found != name:
        raise StateFileError(f"{path} says format {found!r:.60}, not {name!r}.", "Check that this is the right file.")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise StateFileError(
            f"{path} says version {number!r:.60}, which is not a version.", "Use a copy of it from before."
        )
    if number > version:
        raise NewerVersionError(
            f"{path} was written in version {number!r:.60} of its format; this Rankdeck knows up to version {version}.",
            "Use the newer Rankdeck that wrote it.",
        )
    return dict(document)


def sha256_file(path: Path) -> str:
    with open_binary(path) as file:
        return hashlib.file_digest(cast("io.BufferedReader", file), "sha256").hexdigest()


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Raise `explain`'s error in place of an `OSError` inside the ``with`` block."""
    try:
        yield
    except OSError as error:
        raise explain(error, what) from error


def explain(error: OSError, what: str) -> RankdeckError:
    """Make an error with title, cause and next step of an operating system's refusal.

    `what` is the start of the sentence, without a full stop: "run.toml could not be written".
    """
    number, winerror = error.errno, getattr(error, "winerror", None)
    if number in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)) or winerror == 112:
        cause, next_step, title = "the disk is full", "Free some space or choose another drive.", "The disk is full"
    elif is_too_long(error):
        cause, next_step, title = "the path is too long", "Choose a shorter folder.", "The path is too long"
    elif winerror in CLOUD_ERRORS:
        cause, title = "only its name is on this machine, and OneDrive does not fetch it", "A file is in the cloud"
        next_step = "Start OneDrive and choose “Always keep on this device” for it, or use another folder."
    elif winerror in IN_USE:
        cause, next_step, title = "another program has it open", "Close that program and try again.", "A file is in use"
    elif number == errno.EROFS:
        cause, next_step, title = "the drive is read-only", "Choose another drive.", "The drive is read-only"
    elif isinstance(error, PermissionError):
        cause, title = "permission was denied", "No permission"
        next_step = "Choose a folder that you may write to, or change its permissions."
    elif winerror in _WINDOWS_NO_DRIVE or isinstance(error, FileNotFoundError):
        cause, title = "its folder or drive is missing", "A folder is missing"
        next_step = "Connect the drive or check the path."
    elif isinstance(error, NotADirectoryError | FileExistsError):
        cause, next_step, title = "a file is in the place of a folder", "Choose another folder.", "A file is in the way"
    elif isinstance(error, NotRegularError):
        cause, title = "a device or a pipe is in its place", "Not a file"
        next_step = "Remove it, or put a file in its place."
    elif error.errno == errno.ELOOP:
        cause, title = "its links lead back to themselves", "A link leads nowhere"
        next_step = "Remove the link."
    elif isinstance(error, IsADirectoryError):
        cause, next_step, title = "a folder has this name", "Move that folder away.", "A folder is in the way"
    else:
        reason = error.strerror or str(error) or type(error).__name__
        return RankdeckError(f"{what}: {reason}.", "Check the disk and try again.", title="Disk error")
    return PreflightError(f"{what}: {cause}.", next_step, title=title)
