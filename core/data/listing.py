"""Files of a folder: those to train on, those to measure on, and those that are left out, and why.

A folder is as people have them: splits by name, a README, what Windows and macOS put there, links, files that are no
text. Files that are left out never count towards the dataset's identity, so they may come and go.
"""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from core.data.formats import BEGINNING_BYTES, FileFormat, check_text, format_for, is_code_name, is_data_name
from core.errors import DatasetError
from core.held_files import open_binary, read_utf8
from core.parsing import parse_json

# The title of the error about a file or folder that is not there.
MISSING: Final = "The dataset is missing"
Split = Literal["train", "validation", "test", ""]
AUTO: Final = "auto"
# `RunConfig.data_files`: every file that can be read is trained on, as versions did that knew no splits.
ALL_FILES: Final = "all"
RUN_FILES: Final = frozenset(("run.toml", "state.json"))

_SPLITS: Final[dict[str, Split]] = {
    **dict.fromkeys(("train", "training", "trainset", "traindata"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "eval", "evaluation", "valset", "devset"), "validation"),
    **dict.fromkeys(("test", "testing", "testset", "testdata"), "test"),
}
_SPLIT_WORD: Final = re.compile(rf"(?<![^\W_\d])(?:{'|'.join(_SPLITS)})(?![^\W_\d])", re.IGNORECASE)
# Endings of plain text that splits are written in; ``train.py`` beside ``test_train.py`` is a program.
_SPLIT_TEXTS: Final = ("txt", "text")
_SYSTEM: Final = frozenset(
    ("desktop.ini", "thumbs.db", "ehthumbs.db", "$recycle.bin", "system volume information", "node_modules",
     "_delta_log")
)  # fmt: skip
_ABOUT: Final = re.compile(
    r"(readme|licen[cs]e|copying|notice|citation|authors|contributors)([-_. ]\w{1,12})?", re.IGNORECASE
)
_METADATA: Final = re.compile(
    r"(dataset_infos?|dataset_dict|state|metadata|croissant|data_?card)\.(json|jsonl|ya?ml|csv)", re.IGNORECASE
)
_SHOWN: Final = 4
# Files of an unknown ending that are looked at before all of that ending are taken for text.
_LOOKED_AT: Final = 20


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a dataset that are read.

    Attributes:
        files: The training files, then those of a validation split; each part by path.
        validation: The number at the end that are a validation split; 0: a share of the text is held out instead.
        notes: Sentences on splits and on files that are left out.
    """

    files: tuple[tuple[Path, FileFormat], ...]
    validation: int = 0
    notes: tuple[str, ...] = ()

    @property
    def training_files(self) -> tuple[tuple[Path, FileFormat], ...]:
        return self.files[: len(self.files) - self.validation]


def list_folder(root: Path, rule: str, is_stopped: Callable[[], bool] = bool) -> Listing:
    """The files of a folder that are read.

    Args:
        root: The folder.
        rule: `RunConfig.data_files`.
        is_stopped: Asked in each folder: the answer is not needed any more.
    """
    if rule == ALL_FILES:
        found = [path for path in _walk(root, None, is_stopped) if is_data_name(path.name) and path.is_file()]
        files = sorted(found, key=lambda path: relative(path, root))
        return Listing(tuple((path, format_for(path.name)) for path in files))
    left = LeftOut()
    named: dict[str, Path] = {}
    unknown: list[Path] = []
    for path in _walk(root, left, is_stopped):
        if is_system_name(path.name):
            continue
        if not is_data_name(path.name):
            unknown.append(path)
        elif not path.is_file():
            left.dead.append(path.name)
        elif not path.stat().st_size:
            left.empty.append(path.name)
        else:
            named[relative(path, root)] = path
    others = [] if named else _text_of_unknown_endings(unknown)
    named |= {relative(path, root): path for path in others}
    taken = set(others)
    for path in unknown:
        if path not in taken:
            (left.about if _ABOUT.fullmatch(path.stem) else left.no_text).append(path.name)
    about = {name for name in named if _is_about(name, named)}
    if about != named.keys():
        left.about += sorted(about)
        named = {name: path for name, path in named.items() if name not in about}
    parts = find_splits(named)
    training = sorted(name for name, split in parts.items() if split == "train")
    validation = sorted(name for name, split in parts.items() if split == "validation")
    notes = (*_split_notes(parts, training, validation), *left.notes(), *_content_notes(training, others))
    used = tuple((named[name], format_for(named[name].name)) for name in (*training, *validation))
    return Listing(used, len(validation), notes)


def _text_of_unknown_endings(paths: Sequence[Path]) -> list[Path]:
    """The files that hold text, such as ``wiki_00``, ``49960`` or ``wiki.train.raw``: by the first of each ending."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        if path.is_file() and path.stat().st_size and not _ABOUT.fullmatch(path.stem):
            found.setdefault(re.sub(r"\d+", "#", path.suffix.lower()), []).append(path)
    return [path for alike in found.values() if all(map(_is_text, alike[:_LOOKED_AT])) for path in alike]


def _is_text(path: Path) -> bool:
    with open_binary(path) as file:
        data = file.read(BEGINNING_BYTES)
    try:
        check_text(path.name, data, is_beginning=True)
    except DatasetError:
        return False
    return True


def is_system_name(name: str) -> bool:
    """Whether a system, an editor or another program has put a file or folder there: hidden, a lock, Windows' own."""
    return name.startswith((".", "~$", "._")) or name.lower() in _SYSTEM or name.endswith("~")


def raise_error(error: OSError) -> None:
    """Refuse a folder that cannot be read, for `os.walk`."""
    raise error


def relative(path: Path, root: Path) -> str:
    """A file's path within its dataset, with forward slashes."""
    return path.name if path == root else str(PurePosixPath(*path.relative_to(root).parts))


def find_splits(names: Iterable[str]) -> dict[str, Split]:
    """The split of each file of a dataset by its name; "" where it belongs to none though others do.

    Words count only where they make a pair: ``train.csv`` beside ``test.csv``, ``x_train.txt`` beside ``x_dev.txt``, a
    folder ``train`` beside one ``validation``. A story called ``test-of-time.txt`` has no such companion.
    """
    names = list(names)
    marks = {name: found for name in names for found in [_mark(name)] if found is not None}
    families: dict[tuple[str, str], list[_Mark]] = {}
    for mark in marks.values():
        families.setdefault((mark.before, mark.form), []).append(mark)
    paired: set[tuple[str, str]] = set()
    for key, members in families.items():
        training = {mark.behind for mark in members if mark.split == "train"}
        others = {mark.behind for mark in members if mark.split != "train"}
        if training & others or (training and others and ("" in training or "" in others)):
            paired.add(key)
    if not paired:
        return dict.fromkeys(names, "train")
    places = {str(PurePosixPath(before + "x").parent) for before, _ in paired}

    def part(name: str) -> Split:
        mark = marks.get(name)
        if mark is not None and (mark.before, mark.form) in paired:
            return mark.split
        return "" if str(PurePosixPath(name).parent) in places else "train"

    return {name: part(name) for name in names}


@dataclass(frozen=True, slots=True)
class _Mark:
    """A split's word in a path, with the text before and behind it, numbers as ``#``, and the files' form."""

    split: Split
    before: str
    behind: str
    form: str


def _mark(name: str) -> _Mark | None:
    path = PurePosixPath(name)
    form = format_for(path.name)
    stem, dot, ending = (path.name.rpartition(".")[0] if form.packing else path.name).rpartition(".")
    stem = stem if dot else ending
    if form.form == "text" and ending.lower() not in _SPLIT_TEXTS and is_data_name(path.name):
        return None
    for depth, folder in enumerate(path.parts[:-1]):
        if (split := _SPLITS.get(folder.lower())) is not None:
            before = "/".join(path.parts[:depth])
            return _Mark(split, f"{before}/" if before else "", "", f"{form.form}/")
    found = _SPLIT_WORD.search(stem)
    if found is None:
        return None
    before = "/".join((*path.parts[:-1], _plain(stem[: found.start()])))
    return _Mark(_SPLITS[found[0].lower()], before, _plain(stem[found.end() :]), form.form)


def _plain(text: str) -> str:
    """A part of a name without what differs from shard to shard."""
    return re.sub(r"\d+", "#", text).lower() if re.search(r"[^\W\d_]", text) else ""


def _is_about(name: str, names: Iterable[str]) -> bool:
    """Whether a file is about the dataset: a README among data, but not among other pages of its form."""
    path = PurePosixPath(name)
    if _METADATA.fullmatch(path.name):
        return True
    if not _ABOUT.fullmatch(path.stem) or path.suffix.lower() not in ("", ".md", ".rst", ".txt", ".html"):
        return False
    alike = (other for other in map(PurePosixPath, names) if other.suffix == path.suffix)
    return path.suffix == ".txt" or all(_ABOUT.fullmatch(other.stem) for other in alike)


class LeftOut:
    """Files that are left out of a folder, by reason."""

    def __init__(self) -> None:
        self.about: list[str] = []
        self.no_text: list[str] = []
        self.empty: list[str] = []
        self.dead: list[str] = []
        self.circles: list[str] = []

    def notes(self) -> tuple[str, ...]:
        reasons = (
            (self.about, f"about the dataset ({_shown(self.about)})"),
            (self.no_text, f"no text that Rankdeck reads ({_endings(self.no_text)})"),
            (self.empty, f"empty ({_shown(self.empty)})"),
            (self.dead, f"links to nothing ({_shown(self.dead)})"),
        )
        notes = [f"{_files(names)} left out, {reason}." for names, reason in reasons if names]
        if self.circles:
            notes.append(f"Linked folders left out, they lead to what is read anyway: {_shown(self.circles)}.")
        return tuple(notes)


def _split_notes(parts: dict[str, Split], training: Sequence[str], validation: Sequence[str]) -> Iterator[str]:
    if len(training) == len(parts):
        return
    test = sorted(name for name, split in parts.items() if split == "test")
    others = sorted(name for name, split in parts.items() if not split)
    yield f"Training split: {_shown(training)}."
    if validation:
        yield f"Validation split: {_shown(validation)}; nothing is held out of the training split."
    if test:
        why = "kept for a last test" if validation else "kept for a last test; a part of the training split is held out"
        yield f"Test split left out, {why}: {_shown(test)}."
    if others:
        yield f"{_files(others)} left out, of no split: {_shown(others)}."


def _content_notes(training: Sequence[str], others: Sequence[Path]) -> Iterator[str]:
    if others:
        yield f"Read although Rankdeck does not know the endings: {_endings([path.name for path in others])}."
    stems = {name: PurePosixPath(name).name.partition(".")[0].lower() for name in training}
    lone = [name for name, stem in stems.items() if _SPLITS.get(stem, "train") != "train" and not is_code_name(name)]
    if lone and len(training) > 1:
        yield f"Trained on, though named as another split, as no training split is beside it: {_shown(lone)}."
    code = [name for name in training if is_code_name(name)]
    if 0 < 2 * len(code) <= len(training):
        yield f"{_files(code)} program code and trained on, too: {_shown(code)}."
    tables = Counter(PurePosixPath(name).with_suffix("") for name in training if format_for(name).has_rows)
    same = [name for name in training if tables[PurePosixPath(name).with_suffix("")] > 1]
    if same:
        yield f"Files of one name in several forms, each of which is read: {_shown(same)}."


def _endings(names: Sequence[str]) -> str:
    """The number of files of each ending: "12 .png, 3 .pdf"."""
    kinds = Counter(Path(name).suffix.lower() or "without ending" for name in names)
    shown = sorted(kinds.items(), key=lambda item: (-item[1], item[0].replace(" ", "~")))[:_SHOWN]
    more = f", {len(kinds) - _SHOWN:,} other kinds" if len(kinds) > _SHOWN else ""
    return ", ".join(f"{count:,} {kind}" for kind, count in shown) + more


def _files(names: Sequence[str]) -> str:
    return "One file is" if len(names) == 1 else f"{len(names):,} files are"


def _shown(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _walk(root: Path, links: LeftOut | None, is_stopped: Callable[[], bool]) -> Iterator[Path]:
    """The files below a folder; linked folders too where there is a `links` to note those that were read already."""
    seen = {os.path.realpath(root)}
    for folder, folders, names in os.walk(root, onerror=raise_error, followlinks=links is not None):
        if is_stopped():
            raise InterruptedError(errno.ECANCELED, "it was not read to its end", folder)
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        # A run's own folder: its metrics are no text to learn, and they grow.
        if RUN_FILES.issubset(names):
            folders.clear()
            continue
        yield from (Path(folder, name) for name in _saved_by_datasets(Path(folder), names))
        if links is not None:
            inside = [Path(folder, name) for name in folders if not is_system_name(name)]
            inside.sort(key=lambda path: (_is_link(path), path.name))
            folders[:] = [path.name for path in inside if _is_new(path, seen, links)]


def _saved_by_datasets(folder: Path, names: list[str]) -> list[str]:
    """A folder's files; where `datasets` has saved a dataset (``save_to_disk``), those that hold rows."""
    if "dataset_dict.json" in names:
        return []  # its splits are folders
    if not {"state.json", "dataset_info.json"}.issubset(names):
        return names
    try:
        state = parse_json(read_utf8(folder / "state.json"))
        saved = [str(file["filename"]) for file in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError):
        return [name for name in names if name.endswith(".arrow")]
    missing = next((name for name in saved if name not in names), "")
    if missing:
        raise DatasetError(
            f"{folder} should hold {missing}, which is missing.", "Copy the whole folder again.", title=MISSING
        )
    return saved


def _is_link(folder: Path) -> bool:
    """Whether a folder is a symbolic link or, under Windows, a junction."""
    return Path(os.path.realpath(folder)) != Path(os.path.realpath(folder.parent)) / folder.name


def _is_new(folder: Path, seen: set[str], links: LeftOut) -> bool:
    """Whether a folder is unread; a link must not lead to one that holds what is read already."""
    real = os.path.realpath(folder)
    around = _is_link(folder) and any(one.startswith(real.rstrip(os.sep) + os.sep) for one in seen)
    if real in seen or around:
        links.circles.append(folder.name)
        return False
    seen.add(real)
    return True
