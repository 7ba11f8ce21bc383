"""Datasets of the Hugging Face Hub, `hf://owner/name[@revision][:config[:split]]`: parsed, and found in the cache.

Nothing is downloaded and no network is asked; the `datasets` package is not imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.errors import DatasetError
from core.held_files import read_utf8
from core.machine.packages import check_packages
from core.parsing import parse_json
from core.paths import model_variables

HUB: Final = "hf://"
# The recipe's option that lets a dataset be downloaded.
ALLOW_DOWNLOAD: Final = "allow_download"
_NAME: Final = re.compile(
    r"(?P<repo>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?(?::(?P<config>[\w.+-]*))?(?::(?P<split>\w+))?"
)


class DownloadNeededError(DatasetError):
    title = "The dataset must be downloaded first"


@dataclass(frozen=True, slots=True)
class HubName:
    """A dataset of the Hub.

    Attributes:
        repo: ``owner/name``.
        config: Its configuration; empty: the only one, or "default".
        split: Empty: "train", or the only one.
        revision: A branch, tag or commit; empty: the newest.
    """

    repo: str
    config: str = ""
    split: str = ""
    revision: str = ""

    @classmethod
    def parse(cls, text: str) -> HubName:
        """Parse ``hf://…``; raise `DatasetError`."""
        found = _NAME.fullmatch(text.strip().removeprefix(HUB))
        if found is None:
            raise DatasetError(
                f"{text} does not name a dataset of the Hugging Face Hub.",
                "Write hf://owner/name, hf://owner/name:config or hf://owner/name:config:split.",
            )
        return cls(found["repo"], found["config"] or "", found["split"] or "", found["revision"] or "")

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        rest = f":{self.config}:{self.split}" if self.split else f":{self.config}" if self.config else ""
        return f"{HUB}{self.repo}{revision}{rest}"


def check_package() -> None:
    check_packages(("datasets",), "A dataset of the Hugging Face Hub")


def check_download(name: HubName, options: Mapping[str, Any]) -> None:
    """Refuse a dataset that is not on this machine and may not be downloaded."""
    if cached_info(name) is None and options.get(ALLOW_DOWNLOAD) is not True:
        raise not_here(name)


def not_here(name: HubName, size_text: str = "") -> DownloadNeededError:
    """The error about a dataset that would have to be downloaded; `size_text` is a sentence on its size, if known."""
    return DownloadNeededError(
        f"{name} is not on this machine, and downloads are off.{f' {size_text}' if size_text else ''}",
        "Allow the download, or choose a file or folder.",
        option=f"--set {ALLOW_DOWNLOAD}=true (looked in {cache_folder()}; rankdeck preview says how large it is)",
    )


def cache_folder() -> Path:
    """The cache folder of the `datasets` package."""
    chosen = model_variables(os.environ).get("HF_DATASETS_CACHE", "")
    configured = os.environ.get("HF_DATASETS_CACHE", "").strip() or chosen
    if configured:
        return Path(configured).expanduser()
    home = os.environ.get("HF_HOME", "").strip()
    if not home:
        cache = os.environ.get("XDG_CACHE_HOME", "").strip()
        home = str((Path(cache) if cache else Path.home() / ".cache") / "huggingface")
    return Path(home).expanduser() / "datasets"


def cached_info(name: HubName) -> dict[str, Any] | None:
    """`dataset_info.json` of the newest cached copy; None for no copy."""
    found = sorted(_infos(name), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found:
        try:
            value = parse_json(read_utf8(path))
        except (OSError, ValueError):
            continue
        if isinstance(value, dict):
            return value
    return None


def cached_text_bytes(name: HubName) -> int | None:
    """Bytes of the cached copy's rows, all columns together; None where that is not known."""
    splits = (cached_info(name) or {}).get("splits")
    if not isinstance(splits, dict) or not splits:
        return None
    chosen = splits.get(name.split or "train") or next(iter(splits.values()))
    size = chosen.get("num_bytes") if isinstance(chosen, dict) else None
    return size if isinstance(size, int) else None


def _infos(name: HubName) -> Iterator[Path]:
    """The cache's layout: owner___name / config / version / hash / dataset_info.json."""
    folder = cache_folder() / name.repo.replace("/", "___")
    try:
        yield from folder.glob(f"{name.config or '*'}/*/*/dataset_info.json")
    except OSError:
        return
