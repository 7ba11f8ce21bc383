"""A dataset's identity: its files, their size, and a hash that a later resume is compared with.

Text may be in any encoding: byte-level training takes bytes as they are. Rows are read by ranks (`workers.data`).
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from core.config.layers import is_path
from core.data.formats import FileFormat, check_table, check_text, format_for, missing_package
from core.data.hub import HUB, HubName, cached_text_bytes, check_package
from core.data.listing import AUTO, MISSING, Listing, list_folder, raise_error, relative
from core.errors import DatasetError, sentences
from core.files.atomic import explain
from core.files.lfs_pointer import check_lfs_pointer
from core.held_files import open_binary
from core.machine.packages import MissingPackageError
from core.paths import typed_path

Kind = Literal["stdlib", "file", "folder", "hub", "none"]

STDLIB: Final = "stdlib://"
# What a run has whose program reads its own data.
NO_DATASET: Final = "none://"
_NOT_STDLIB: Final = frozenset(
    ("site-packages", "dist-packages", "test", "tests", "idlelib", "turtledemo", "__pycache__", "_bundled")
)
_READ_BYTES: Final = 1 << 20
_BEGINNING_BYTES: Final = 1 << 16
# How many files of a folder are opened while a form is filled in: some tenths of a second on a slow disk.
_LOOKED_AT: Final = 1000
# Smaller files are alike without being copies, such as a package's empty `__init__.py`.
_SMALLEST_COPY: Final = 256
_SHOWN_COPIES: Final = 4
_GZIP_TRAILER_BYTES: Final = 18
_USUAL_PACKING: Final = 3
# How many bytes of text a byte of a packed file, or of a Parquet table, usually stands for.
_USUAL_TABLE: Final = 2
_HUB_NAME: Final = re.compile(r"[A-Za-z][\w-]*/[\w.-]+")


@dataclass(frozen=True, slots=True)
class DatasetIdentity:
    """A dataset as the ledger remembers it.

    Attributes:
        path: ``stdlib://``, or the absolute path of a file or folder.
        sha256: Of a single file, its own hash; of several, one over every file's name, size and hash, in order.
        utf8: Whether every file of text is valid UTF-8. Byte-level training does not mind.
        text_bytes: An estimate of its text, where that is not `size_bytes`: packed files, tables, the Hub.
        has_rows: Whether a file of it holds rows with columns, one of which is the text.
        held_out_bytes: Bytes of text in a validation split of its own; 0 where it has none.
        notes: Sentences on splits and on files that are left out.
    """

    path: str
    kind: Kind
    files: int
    size_bytes: int
    sha256: str
    utf8: bool = True
    text_bytes: int | None = None
    has_rows: bool = False
    held_out_bytes: int = 0
    notes: tuple[str, ...] = ()

    @property
    def expected_bytes(self) -> int:
        return self.size_bytes if self.text_bytes is None else self.text_bytes

    @property
    def is_counted(self) -> bool:
        """Whether `expected_bytes` is exact, not an estimate."""
        return self.text_bytes is None

    def as_dict(self) -> dict[str, Any]:
        """The part that a ledger keeps."""
        return {"path": self.path, "size_bytes": self.size_bytes, "sha256": self.sha256, "files": self.files}


@dataclass(frozen=True, slots=True)
class _FileFacts:
    sha256: str
    utf8: bool


# Facts of files read before in this process, by path, size and mtime: a form asks again at every key press.
_known_files: dict[tuple[str, int, int], _FileFacts] = {}


def identify(text: str, rule: str = AUTO) -> DatasetIdentity:
    """The dataset that `text` names, with every file in it read once; raises `DatasetError` or `MissingPackageError`.

    `text` is ``stdlib://``, a file, a folder, or ``hf://…`` (of which only the name is known here); `rule` is
    `RunConfig.data_files`.
    """
    if text.strip() == NO_DATASET:
        return DatasetIdentity(NO_DATASET, "none", 0, 0, hashlib.sha256().hexdigest())
    if is_hub(text):
        return _identify_hub(HubName.parse(text))
    kind, root = _locate(text)
    listing = _find_files(kind, root, rule)
    files = listing.files
    check_packages_for(text, files)
    sizes, utf8, shown = list[int](), True, ""
    copies: dict[str, list[str]] = {}
    combined = hashlib.sha256()
    for path, file_format in files:
        facts, size = _facts(path, file_format)
        sizes.append(size)
        utf8 = utf8 and facts.utf8
        combined.update(f"{relative(path, root)}\0{size}\0{facts.sha256}\n".encode("utf-8", "surrogatepass"))
        shown = facts.sha256
        if size >= _SMALLEST_COPY and kind == "folder":
            copies.setdefault(shown, []).append(relative(path, root))
    if not sum(sizes):
        raise _empty(kind, root)
    path_text = STDLIB if kind == "stdlib" else str(root)
    digest = shown if kind == "file" else combined.hexdigest()
    notes = (*listing.notes, *_copy_notes(copies, files[len(files) - listing.validation :], root))
    return replace(_of_sizes(path_text, kind, listing, sizes), sha256=digest, utf8=utf8, notes=notes)


def _of_sizes(name: str, kind: Kind, listing: Listing, sizes: Sequence[int]) -> DatasetIdentity:
    """An identity without a hash, of files with these sizes."""
    files = listing.files
    texts = [_text_bytes(path, size, file_format) for (path, file_format), size in zip(files, sizes, strict=True)]
    counted = all(file_format.is_plain_text for _, file_format in files)
    return DatasetIdentity(
        name, kind, len(files), sum(sizes), "", True, None if counted else sum(texts),
        any(file_format.has_rows for _, file_format in files), sum(texts[len(files) - listing.validation :]),
        listing.notes,
    )  # fmt: skip


def _copy_notes(copies: dict[str, list[str]], held_out: Sequence[tuple[Path, FileFormat]], root: Path) -> Iterator[str]:
    """A sentence on files that are the same, and one on those whose copy is in the validation split."""
    measured = {relative(path, root) for path, _ in held_out}
    same = [names for names in copies.values() if len(names) > 1]
    if same:
        more = f"; and {len(same) - 1:,} more such groups" if len(same) > 1 else ""
        yield f"Files with the same content, each of which is read: {', '.join(same[0][:_SHOWN_COPIES])}{more}."
    leaked = sum(1 for names in same if 0 < len(measured.intersection(names)) < len(names))
    if leaked:
        verb = "is" if leaked == 1 else "are"
        yield f"{leaked:,} of them {verb} in the validation split too, so its loss is too low."


def typed_dataset(text: str) -> str:
    """A dataset as a person typed or pasted it, without quotes and ``file://``; ``hf://…`` as it is."""
    text = text.strip()
    return str(typed_path(text)) if text and is_path(text) else text


def is_hub(text: str) -> bool:
    """Whether `text` names a dataset of the Hugging Face Hub."""
    return text.strip().startswith(HUB)


def list_files(text: str, rule: str = AUTO) -> list[Path]:
    return [path for path, _ in list_dataset(text, rule).files]


def list_dataset(text: str, rule: str = AUTO, is_stopped: Callable[[], bool] = bool) -> Listing:
    """A dataset's files in reading order, each with its format; none of the Hub's. `rule`: `RunConfig.data_files`."""
    if is_hub(text):
        HubName.parse(text)
        return Listing(())
    kind, root = _locate(text)
    return _find_files(kind, root, rule, is_stopped)


def is_whole_drive(text: str) -> bool:
    """Whether `text` names the root of a file system or the drive itself: `/`, `C:\\`, `C:`."""
    path = Path(text.strip())
    # The root of a network share is an ordinary folder.
    if not text.strip() or path.drive.startswith("\\\\"):
        return False
    return path.absolute() == Path(path.absolute().anchor) or (bool(path.drive) and not path.name)


def check_packages_for(text: str, files: Sequence[tuple[Path, FileFormat]]) -> None:
    """Raise `MissingPackageError` for a package that reading these files needs."""
    if is_hub(text):
        check_package()
    for path, file_format in files:
        package = missing_package(file_format)
        if package:
            with suppress(OSError):  # told where it is read
                check_lfs_pointer(path)
            raise MissingPackageError((package,), f"The file {path.name}")


def look_at_beginnings(text: str, listing: Listing) -> DatasetIdentity:
    """A dataset's size, with what can be refused from the beginnings of its files; an identity without a hash."""
    files, sizes = listing.files, list[int]()
    try:
        for path, file_format in files:
            sizes.append(path.stat().st_size)
            if len(sizes) <= _LOOKED_AT:
                with open_binary(path) as file:
                    _check_block(path, file_format, file.read(_BEGINNING_BYTES), is_beginning=True)
        found = _of_sizes(text, "file", listing, sizes)
    except OSError as error:
        raise _unreadable(path, error) from None
    if files and not found.size_bytes:
        raise _empty("file" if len(files) == 1 else "folder", Path(text))
    return found


def estimate_samples(identity: DatasetIdentity, seq_len: int, held_out: float = 0.0) -> int:
    """Training samples when each byte is one token: exact for byte-level training, an upper limit otherwise.

    `held_out` is the share of the text that is kept for validation, from 0 to 1; at least one sample then.
    """
    kept = identity.held_out_bytes
    if held_out and not kept:
        kept = max(int(identity.expected_bytes * held_out), seq_len + 1)
    return max(0, (identity.expected_bytes - kept - 1) // seq_len)


def check_size(identity: DatasetIdentity, seq_len: int) -> None:
    """Refuse a dataset without a sample to train on and one to hold out, if each byte is a token.

    Where the text can only be counted by reading it (packed files, tables) its ranks do so.
    """
    needed_bytes = 2 * (seq_len + 1) if identity.is_counted and identity.kind != "none" else 0
    if identity.size_bytes < needed_bytes:
        raise DatasetError(
            f"{identity.path} has {identity.size_bytes:,} bytes; with sequences of {seq_len} tokens, one to train on "
            f"and one to measure with, at least {needed_bytes:,} are needed.",
            "Choose more text or a shorter sequence length.",
            title="The dataset is too small",
            option="--seq-len TOKENS",
        )


def _identify_hub(name: HubName) -> DatasetIdentity:
    check_package()
    digest = hashlib.sha256(str(name).encode("utf-8")).hexdigest()
    return DatasetIdentity(str(name), "hub", 0, 0, digest, text_bytes=cached_text_bytes(name) or 0)


def _text_bytes(path: Path, size: int, file_format: FileFormat) -> int:
    """An estimate of a file's unpacked text. Rows are taken as text throughout, so that is an upper limit there."""
    if file_format.packing == "gz" and size > _GZIP_TRAILER_BYTES:
        # The last four bytes are the unpacked size modulo 2^32 (RFC 1952); never less than what is packed.
        with open_binary(path) as file:
            file.seek(-4, os.SEEK_END)
            return max(size, int.from_bytes(file.read(4), "little"))
    if file_format.packing:
        return _USUAL_PACKING * size
    return _USUAL_TABLE * size if file_format.form == "parquet" else size


def _locate(text: str) -> tuple[Kind, Path]:
    text = text.strip()
    if not text:
        raise _error("No dataset is named.", "Name a file, a folder, hf://… or stdlib://.")
    if text == STDLIB:
        return "stdlib", Path(sysconfig.get_path("stdlib"))
    if not is_path(text):
        scheme = text.partition("://")[0]
        raise _error(
            f"{text}: {scheme}:// is an unsupported dataset type.", "Name a file, a folder, hf://… or stdlib://."
        )
    root = typed_path(text).absolute()
    try:
        if root.is_dir():
            return "folder", root
        if root.is_file():
            return "file", root
        if root.exists():
            raise _error(f"{root} is neither a file nor a folder.", "Name a text file or a folder of them.")
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        raise _error(f"{text!r} is not a valid path ({error}).", "Check the path.") from None
    hub = f" For a dataset of the Hugging Face Hub, write {HUB}{text}." if _HUB_NAME.fullmatch(text) else ""
    raise _error(f"There is no file or folder {root}.", f"Check the path.{hub}", MISSING)


def _find_files(kind: Kind, root: Path, rule: str, is_stopped: Callable[[], bool] = bool) -> Listing:
    if kind == "file":
        return Listing(((root, format_for(root.name)),))
    try:
        listing = _list_sources(root) if kind == "stdlib" else list_folder(root, rule, is_stopped)
    except OSError as error:
        raise _unreadable(Path(error.filename or root), error) from None
    if not listing.files:
        what = "Python sources" if kind == "stdlib" else "text files (.txt, .md, .py, .jsonl, .csv, .parquet, …)"
        raise _error(
            sentences(f"{root} holds no {what}.", *listing.notes), "Choose a folder with text files, or name one file."
        )
    return listing


def _list_sources(root: Path) -> Listing:
    found: list[Path] = []
    for folder, folders, names in os.walk(root, onerror=raise_error):
        folders[:] = [name for name in folders if name not in _NOT_STDLIB]
        found += [path for name in names if name.endswith(".py") and (path := Path(folder, name)).is_file()]
    return Listing(tuple((path, FileFormat("text")) for path in sorted(found, key=lambda path: relative(path, root))))


def _facts(path: Path, file_format: FileFormat) -> tuple[_FileFacts, int]:
    try:
        stat = path.stat()
        key = (str(path), stat.st_size, stat.st_mtime_ns)
        if key not in _known_files:
            _known_files[key] = _read_facts(path, file_format)
    except OSError as error:
        raise _unreadable(path, error) from None
    return _known_files[key], stat.st_size


def _read_facts(path: Path, file_format: FileFormat) -> _FileFacts:
    digest = hashlib.sha256()
    decoder = codecs.getincrementaldecoder("utf-8")()
    utf8 = is_beginning = True
    with open_binary(path) as file:
        while block := file.read(_READ_BYTES):
            _check_block(path, file_format, block, is_beginning=is_beginning)
            digest.update(block)
            is_beginning = False
            utf8 = utf8 and (not file_format.is_readable_text or _decodes(decoder, block))
    return _FileFacts(digest.hexdigest(), utf8 and _decodes(decoder, b"", final=True))


def _check_block(path: Path, file_format: FileFormat, block: bytes, *, is_beginning: bool) -> None:
    if file_format.is_readable_text:
        check_text(str(path), block, is_beginning=is_beginning)
    elif is_beginning and file_format.form in ("parquet", "arrow"):
        check_table(str(path), file_format.form, block)
    elif is_beginning:
        check_lfs_pointer(path, block)


def _empty(kind: Kind, root: Path) -> DatasetError:
    what = f"{root} is empty" if kind == "file" else f"Every text file in {root} is empty"
    return _error(f"{what}, so there is nothing to train on.", "Choose a file with text in it.", "The dataset is empty")


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True


def _unreadable(path: Path, error: OSError) -> DatasetError:
    explained = explain(error, f"{path} could not be read")
    return _error(explained.cause, "Check that you may read it.", "The dataset cannot be read")


def _error(cause: str, next_step: str, title: str | None = None) -> DatasetError:
    return DatasetError(cause, next_step, title=title)
