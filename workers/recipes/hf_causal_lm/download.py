"""A model of the Hugging Face Hub on this machine: the copy that is here, or a download that was allowed."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rankdeck.recipe import TOKENIZER_FILES, ConfigError
from workers.recipes.hf_causal_lm.source import Source, not_here

_WANTED: Final = ("config.json", *TOKENIZER_FILES, "*.safetensors", "*.safetensors.index.json")
_ANSWER_S: Final = 20.0


def local_folder(source: Source, allow_download: bool, say: Callable[[str], None]) -> Path:
    """The folder that holds a model's files; what is downloaded, and how large it is, is said before it begins.

    Raises:
        ConfigError: It is not here and may not be downloaded, or the Hub does not give it.
    """
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
    """What a download would fetch, as the Hub says: files and their size.

    Raises:
        ConfigError: The Hub does not answer, or has no safetensors of it.
    """
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
    """Those of a model's files that are downloaded, with their sizes in bytes: no pickles, nothing for other programs.

    Args:
        files: Names and sizes of all.
    """
    return [file for file in files if any(fnmatch.fnmatch(file[0], pattern) for pattern in _WANTED)]


def size_text(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:,.1f} MB"


@contextmanager
def _explained(source: Source) -> Iterator[None]:
    """Raises the package's errors (no network, no such model, no permission, a full disk) as `ConfigError`."""
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
