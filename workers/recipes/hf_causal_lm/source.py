"""Source of the model that `--model` names: made from scratch, a folder on this machine, or the Hub.

Needs no torch: the check before a run reads it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rankdeck.recipe import ConfigError, hub_cache, snapshot_folder

SCRATCH: Final = ("gpt2", "llama", "qwen3")
"""Architectures that can be made from nothing but their sizes."""
HUB: Final = "hf://"
_HUB_NAME: Final = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_HUB_NAME_ALONE: Final = re.compile(r"(?P<repo>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model comes from.

    Attributes:
        kind: "scratch", "folder" or "hub".
        name: The architecture, the folder, or ``owner/name``.
        revision: Of a Hub model: a branch, tag or commit; empty: the newest.
        folder: Where its files lie; None for scratch, and for a Hub model that is not on this machine.
    """

    kind: Literal["scratch", "folder", "hub"]
    name: str
    revision: str = ""
    folder: Path | None = None


def find_source(model: str) -> Source:
    """What a name means. A folder that is there wins over a name; no network is asked.

    Args:
        model: As `--model` says it.

    Raises:
        ConfigError: It is nothing of the three.
    """
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
    """The refusal of a Hub model that would have to be downloaded."""
    return ConfigError(
        "model",
        f"The model {source.name} is not on this machine.",
        "Allow the download (its size is shown before it begins), or choose the folder of a local model.",
        option=f"--set allow_download=true, or --model FOLDER (looked in {hub_cache()})",
        title="The model must be downloaded first",
        allows="allow_download",
    )
