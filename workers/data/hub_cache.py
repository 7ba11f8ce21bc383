"""The cache in which the package huggingface_hub keeps models: looked into without it, and without a network.

Its layout: ``models--owner--name/refs/<revision>`` names a commit, ``snapshots/<commit>`` holds that commit's files.
"""

from __future__ import annotations

import os
from pathlib import Path


def hub_cache() -> Path:
    """The cache's folder, as the package's environment variables say."""
    folder = os.environ.get("HF_HUB_CACHE", "").strip() or os.environ.get("HUGGINGFACE_HUB_CACHE", "").strip()
    if folder:
        return Path(folder).expanduser()
    home = os.environ.get("HF_HOME", "").strip()
    if not home:
        home = str(Path(os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache") / "huggingface")
    return Path(home).expanduser() / "hub"


def snapshot_folder(repo: str, revision: str = "") -> Path | None:
    """The folder with the files of a model that were downloaded, perhaps not all; None where there are none.

    Args:
        repo: ``owner/name``, or the bare name of an old model ("gpt2").
        revision: A branch, tag or commit; empty: the newest.
    """
    root = hub_cache() / f"models--{repo.replace('/', '--')}"
    wanted = revision or "main"
    try:
        commit = (root / "refs" / wanted).read_text(encoding="utf-8").strip()
    except OSError:
        commit = wanted  # a commit by its hash
    folder = root / "snapshots" / commit
    return folder if folder.is_dir() else None
