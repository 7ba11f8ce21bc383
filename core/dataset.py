"""What a run is trained on: which files, how large, and a hash that a later resume can hold against.

Nothing is read into memory and nothing is written. Text may be in any encoding: byte-level training takes bytes
as they are.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

from core.errors import DatasetError
from core.files import explain

Kind = Literal["stdlib", "file", "folder"]

STDLIB: Final = "stdlib://"
_TEXT_NAME: Final = re.compile(
    r".+\.(txt|text|md|markdown|rst|tex|log|csv|tsv|jsonl?|ndjson|xml|html?|css|ya?ml|toml|ini|cfg|pyi?|ipynb|jsx?|tsx?"
    r"|java|kt|[ch]|cc|cpp|cxx|hpp|cuh?|cs|go|rs|rb|php|p[lm]|lua|r|jl|m|swift|scala|sh|bash|ps1|bat|sql|srt|vtt)",
    re.IGNORECASE,
)
_NOT_STDLIB: Final = frozenset(
    ("site-packages", "dist-packages", "test", "tests", "idlelib", "turtledemo", "__pycache__", "_bundled")
)
_RUN_FILES: Final = frozenset(("run.toml", "state.json"))
_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DatasetIdentity:
    """A dataset as the ledger remembers it.

    Attributes:
        path: ``stdlib://``, or the absolute path of a file or folder.
        kind: What `path` names.
        files: How many files it holds.
        size_bytes: Their sizes added up.
        sha256: Of a single file, its own hash; of several, one over every file's name, size and hash, in order.
        utf8: Whether every file is valid UTF-8. Byte-level training does not mind.
    """

    path: str
    kind: Kind
    files: int
    size_bytes: int
    sha256: str
    utf8: bool = True

    def as_dict(self) -> dict[str, Any]:
        """The part that a ledger keeps: path, size, hash, number of files."""
        return {"path": self.path, "size_bytes": self.size_bytes, "sha256": self.sha256, "files": self.files}


@dataclass(frozen=True, slots=True)
class _FileFacts:
    sha256: str
    utf8: bool


_known_files: dict[tuple[str, int, int], _FileFacts] = {}
"""Facts of files read before in this process, by path, size and mtime: a form asks again at every key press."""


def identify(text: str) -> DatasetIdentity:
    """The dataset that `text` names, with every file in it read once.

    Args:
        text: ``stdlib://``, a file, or a folder.

    Raises:
        DatasetError: Missing, unreadable, empty, not text, or of a kind that cannot be read yet.
    """
    kind, root = _locate(text)
    files = _files_of(kind, root)
    total, utf8, shown = 0, True, ""
    combined = hashlib.sha256()
    for path in files:
        facts, size = _facts(path)
        total += size
        utf8 = utf8 and facts.utf8
        combined.update(f"{_relative(path, root)}\0{size}\0{facts.sha256}\n".encode("utf-8", "surrogatepass"))
        shown = facts.sha256
    if total == 0:
        what = f"{root} is empty" if kind == "file" else f"Every text file in {root} is empty"
        raise _error(f"{what}: there is nothing to train on.", "Choose a file with text in it.", "The dataset is empty")
    path_text = STDLIB if kind == "stdlib" else str(root)
    return DatasetIdentity(path_text, kind, len(files), total, shown if kind == "file" else combined.hexdigest(), utf8)


def list_files(text: str) -> list[Path]:
    """The dataset's files in the order in which they are read, by their path within it.

    Raises:
        DatasetError: Missing, unreadable, without a single text file, or of a kind that cannot be read yet.
    """
    kind, root = _locate(text)
    return _files_of(kind, root)


def estimate_samples(identity: DatasetIdentity, seq_len: int, held_out: float = 0.0) -> int:
    """Training samples when each byte is one token: exact for byte-level training, an upper limit otherwise.

    Args:
        identity: The dataset.
        seq_len: Tokens in a sample.
        held_out: Share of the text that is kept for validation, from 0 to 1; at least one sample then.
    """
    kept = max(int(identity.size_bytes * held_out), seq_len + 1) if held_out else 0
    return max(0, (identity.size_bytes - kept - 1) // seq_len)


def check_size(identity: DatasetIdentity, seq_len: int) -> None:
    """Refuses a dataset without a sample to train on and one to hold out, if each byte is a token.

    Raises:
        DatasetError: It is too small.
    """
    needed_bytes = 2 * (seq_len + 1)
    if identity.size_bytes < needed_bytes:
        raise _error(
            f"{identity.path} has {identity.size_bytes:,} bytes; with sequences of {seq_len} tokens, one to train on "
            f"and one to measure with, at least {needed_bytes:,} are needed.",
            "Choose more text or a shorter sequence length (--seq-len).",
            "The dataset is too small",
        )


def _locate(text: str) -> tuple[Kind, Path]:
    text = text.strip()
    if not text:
        raise _error("No dataset is named.", "Name a text file, a folder of them, or stdlib://.")
    if text == STDLIB:
        return "stdlib", Path(sysconfig.get_path("stdlib"))
    if "://" in text:
        scheme = text.partition("://")[0]
        if scheme == "hf":
            raise _error(
                f"{text}: datasets of the Hugging Face Hub come with a later version of Rankdeck.",
                "Download the text and name its file or folder.",
            )
        raise _error(f"{text}: {scheme}:// is no kind of dataset.", "Name a text file, a folder of them, or stdlib://.")
    root = Path(text).absolute()
    try:
        if root.is_dir():
            return "folder", root
        if root.is_file():
            return "file", root
        if root.exists():
            raise _error(f"{root} is neither a file nor a folder.", "Name a text file or a folder of them.")
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        raise _error(f"{text!r} is no path that can be looked up ({error}).", "Check the path.") from None
    raise _error(f"There is no file or folder {root}.", "Check the path.", "The dataset is missing")


def _files_of(kind: Kind, root: Path) -> list[Path]:
    if kind == "file":
        return [root]
    found: list[Path] = []

    def refuse(error: OSError) -> None:
        raise _unreadable(Path(error.filename or root), error)

    for folder, folders, names in os.walk(root, onerror=refuse):
        folders[:] = [name for name in folders if not _is_skipped(name, kind)]
        if _RUN_FILES.issubset(names):  # a run's own folder: its metrics are no text to learn, and they grow
            folders.clear()
            continue
        found += [Path(folder, name) for name in names if _is_wanted(name, kind)]
    if not found:
        what = "Python sources" if kind == "stdlib" else "text files (.txt, .md, .py, .json, …)"
        raise _error(f"{root} holds no {what}.", "Choose a folder with text files, or name one file.")
    return sorted((path for path in found if path.is_file()), key=lambda path: _relative(path, root))


def _is_skipped(name: str, kind: Kind) -> bool:
    return name in _NOT_STDLIB if kind == "stdlib" else name.startswith(".") or name == "__pycache__"


def _is_wanted(name: str, kind: Kind) -> bool:
    return name.endswith(".py") if kind == "stdlib" else bool(_TEXT_NAME.fullmatch(name)) and name[0] != "."


def _relative(path: Path, root: Path) -> str:
    return path.name if path == root else str(PurePosixPath(*path.relative_to(root).parts))


def _facts(path: Path) -> tuple[_FileFacts, int]:
    """What is in a file, and its size in bytes."""
    try:
        stat = path.stat()
        key = (str(path), stat.st_size, stat.st_mtime_ns)
        if key not in _known_files:
            _known_files[key] = _read_facts(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    return _known_files[key], stat.st_size


def _read_facts(path: Path) -> _FileFacts:
    digest = hashlib.sha256()
    decoder = codecs.getincrementaldecoder("utf-8")()
    utf8 = True
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            if b"\0" in block:
                raise _error(
                    f"{path} is not text: it holds NUL bytes (a binary file, or UTF-16).",
                    "Choose a text file; save UTF-16 text as UTF-8.",
                    "The dataset is not text",
                )
            digest.update(block)
            utf8 = utf8 and _decodes(decoder, block)
    return _FileFacts(digest.hexdigest(), utf8 and _decodes(decoder, b"", final=True))


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True


def _unreadable(path: Path, error: OSError) -> DatasetError:
    words = explain(error, f"{path} could not be read")
    return _error(words.cause, "Check that you may read it.", "The dataset cannot be read")


def _error(cause: str, next_step: str, title: str | None = None) -> DatasetError:
    return DatasetError(cause, next_step, title=title)
