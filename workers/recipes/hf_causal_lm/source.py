"""Source of the model that `--model` names: made from scratch, a folder on this machine, or the Hub. Needs no torch."""

from __future__ import annotations

import fnmatch
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from rankdeck.recipe import TOKENIZER_FILES, ConfigError, hub_cache, snapshot_folder

_WANTED: Final = ("config.json", *TOKENIZER_FILES, "*.safetensors", "*.safetensors.index.json")
_ANSWER_S: Final = 20.0


def local_folder(source: Source, allow_download: bool, say: Callable[[str], None]) -> Path:
    """The folder that holds a model's files, downloaded if allowed; `say` gets the size before it begins."""
    if source.folder is not None:
        return source.folder
    if not allow_download:
        raise not_here(source)
    message = f"downloading {source.name}: {ask_size(source)}"
    sys.stderr.write(f"{message}\n")
    say(message)
    from huggingface_hub import snapshot_download

    with _explained(source):
        return Path(snapshot_download(source.name, revision=source.revision or None, allow_patterns=list(_WANTED)))


def ask_size(source: Source) -> str:
    """A download's files and size, as the Hub says; raises `ConfigError`."""
    from huggingface_hub import HfApi

    with _explained(source):
        revision = source.revision or None
        info: Any = HfApi().model_info(source.name, revision=revision, files_metadata=True, timeout=_ANSWER_S)
    sizes = wanted_files([(file.rfilename, file.size or 0) for file in info.siblings or ()])
    if not any(name.endswith(".safetensors") for name, _ in sizes):
        raise ConfigError(
            "model",
            f"{source.name} has no safetensors files on the Hub; pickled weights can run any code, so they are not "
            "opened.",
            "Choose another revision (owner/name@revision) or another model.",
            title="The weights are not safetensors",
        )
    return f"{len(sizes)} files, {size_text(sum(size for _, size in sizes))}"


def wanted_files(files: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """The files that are downloaded, with sizes in bytes: no pickles, nothing for other programs."""
    return [file for file in files if any(fnmatch.fnmatch(file[0], pattern) for pattern in _WANTED)]


def size_text(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:,.1f} MB"


@contextmanager
def _explained(source: Source) -> Iterator[None]:
    """Raise the package's errors (no network, no such model, no permission, a full disk) as `ConfigError`."""
    try:
        yield
    except Exception as error:
        why = " ".join(str(error).split())[:400]
        raise ConfigError(
            "model",
            f"{source.name} could not be downloaded ({type(error).__name__}: {why}).",
            "Check the name and the network, or download it elsewhere and choose its folder.",
            option="--model FOLDER",
            title="The model could not be downloaded",
        ) from error


# Architectures that can be made from nothing but their sizes.
SCRATCH: Final = ("gpt2", "llama", "qwen3")
HUB: Final = "hf://"
_HUB_NAME: Final = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_HUB_NAME_ALONE: Final = re.compile(r"(?P<repo>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?")


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a model.

    Attributes:
        kind: "scratch", "folder" or "hub".
        name: The architecture, the folder, or ``owner/name``.
        revision: Of a Hub model: a branch, tag or commit; empty: the newest.
        folder: Its files; None for scratch, and for a Hub model that is not on this machine.
    """

    kind: Literal["scratch", "folder", "hub"]
    name: str
    revision: str = ""
    folder: Path | None = None


def find_source(model: str) -> Source:
    """The source that `--model` names; a folder that exists wins over a name, and no network is asked."""
    text = model.strip()
    if not text.startswith(HUB) and text and Path(text).expanduser().is_dir():
        return Source("folder", text, folder=Path(text).expanduser().absolute())
    if text in SCRATCH:
        return Source("scratch", text)
    pattern = _HUB_NAME_ALONE if text.startswith(HUB) else _HUB_NAME
    found = pattern.fullmatch(text.removeprefix(HUB))
    if found is None or ".." in text or Path(text).is_absolute():
        raise ConfigError(
            "model",
            f"{model!r} is neither a folder on this machine, nor a model of the Hugging Face Hub (owner/name), nor one "
            f"of {', '.join(SCRATCH)}.",
            "Check the path, or choose llama for a model from scratch.",
            option="--model llama",
            title="There is no such model",
        )
    repo, revision = found["repo"], found["revision"] or ""
    return Source("hub", repo, revision, cached_folder(repo, revision))


def cached_folder(repo: str, revision: str = "") -> Path | None:
    """The folder of a Hub model that was downloaded whole before, or None."""
    folder = snapshot_folder(repo, revision)
    if folder is None or not (folder / "config.json").is_file():
        return None
    return folder if any((*folder.glob("*.safetensors"), *folder.glob("*.bin"))) else None


def not_here(source: Source) -> ConfigError:
    return ConfigError(
        "model",
        f"The model {source.name} is not on this machine.",
        "Allow the download (its size is shown before it begins), or choose the folder of a local model.",
        option=f"--set allow_download=true, or --model FOLDER (looked in {hub_cache()})",
        title="The model must be downloaded first",
        allows="allow_download",
    )
