"""Datasets of the Hugging Face Hub, by the `datasets` package: its cached copy, or an allowed download.

`datasets` runs in a process of its own: variables that it reads at its import decide whether it may use the network,
and its memory is free again when it ends. It answers with names of Arrow files, which are read here.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from core.data.hub import HubName, check_package, not_here
from core.errors import DatasetError, RankdeckError
from core.processes.exit_codes import describe_exit
from core.processes.program_environment import program_environment
from core.program_search import run_hidden

_SIZE_LIMIT_S: Final = 60.0
_OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
_TRAINING: Final = ("train", "training")
_VALIDATION: Final = ("validation", "valid", "val", "dev", "eval", "evaluation")
_CONFIG_HINT: Final = "Name the configuration and the split: hf://owner/name:config:split."


def fetch(name: HubName, allow_download: bool, say: Callable[[str], None]) -> tuple[list[Path], list[Path], str]:
    """The Arrow files of a dataset's split, those of its validation split, and that split's name.

    `say` gets the download's size before it begins. Raises `DatasetError` where the data is not here and may not be
    downloaded or does not exist, and `PreflightError` where the package is missing.
    """
    check_package()
    found = _ask("open", name, offline=True)
    if "files" in found:
        return _files(found)
    if not found.get("missing"):
        raise _failed(name, found)
    if not allow_download:
        raise not_here(name)
    size = size_text(name)
    say(f"downloading {name}. {size}")
    sys.stderr.write(f"rankdeck: downloading {name}. {size}\n")
    found = _ask("open", name, offline=False)
    if "files" not in found:
        raise _failed(name, found)
    return _files(found)


def _files(found: dict[str, Any]) -> tuple[list[Path], list[Path], str]:
    files, held_out = ([Path(path) for path in found.get(key, ())] for key in ("files", "held_out"))
    return files, held_out, str(found.get("held_out_split", ""))


def size_text(name: HubName) -> str:
    """A sentence on a download's size, as the Hub says; or why that is not known."""
    found = _ask("size", name, offline=False, limit_s=_SIZE_LIMIT_S)
    if "files" not in found:
        return f"Its size is unknown ({found.get('cause', 'the Hub did not answer')})."
    unit, size = "MB", found["bytes"] / 1e6
    if size >= 1000:
        unit, size = "GB", size / 1000
    return f"It has {found['files']:,} files of {size:,.1f} {unit} in all."


def _ask(what: str, name: HubName, *, offline: bool, limit_s: float | None = None) -> dict[str, Any]:
    """Run this module as a program; its last line is JSON."""
    quiet = {"HF_HUB_DISABLE_TELEMETRY": "1", **(_OFFLINE if offline else {})}
    arguments = [what, name.repo, name.config, name.split, name.revision]
    with contextlib.suppress(subprocess.TimeoutExpired):
        command = [sys.executable, "-m", "workers.data.reading.hub", *arguments]
        done = run_hidden(command, limit_s, env=program_environment(os.environ, quiet), shows_errors=True)
        for line in reversed(done.stdout.splitlines()):
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, dict):
                    return value
        return {"cause": f"the process that asked {describe_exit(done.returncode)}"}
    return {"cause": f"no answer within {limit_s:g} s"}


def _failed(name: HubName, found: dict[str, Any]) -> RankdeckError:
    cause = " ".join(str(found.get("cause", "no reason was given")).split())[:600].rstrip(".")
    return DatasetError(
        f"{name} could not be opened: {cause}.", found.get("next_step") or "Check its name on huggingface.co."
    )


def _main(what: str, repo: str, config: str, split: str, revision: str) -> dict[str, Any]:
    return _size(repo, revision) if what == "size" else _open(repo, config, split, revision)


def _size(repo: str, revision: str) -> dict[str, Any]:
    from huggingface_hub import HfApi

    info = HfApi().dataset_info(repo, revision=revision or None, files_metadata=True, timeout=20)
    sizes = [file.size or 0 for file in info.siblings or ()]
    return {"files": len(sizes), "bytes": sum(sizes)}


def _open(repo: str, config: str, split: str, revision: str) -> dict[str, Any]:
    import datasets

    datasets.disable_progress_bars()
    try:
        found: Any = datasets.load_dataset(repo, config or None, revision=revision or None)
    except (ConnectionError, FileNotFoundError) as error:  # offline, and not in the cache
        return {"missing": True, "cause": str(error)}
    except ValueError as error:
        missing = "Couldn't find cache" in str(error)
        return {"missing": missing, "cause": str(error), "next_step": _CONFIG_HINT}
    names = list(found)
    if split and split not in names:
        return {"cause": f"it has no split {split!r}", "next_step": f"Its splits are: {', '.join(names)}."}
    chosen = split or ("train" if "train" in names else names[0])
    held_out = next((one for one in _VALIDATION if one in names and chosen in _TRAINING), "")
    files, measured = (
        [file["filename"] for file in found[one].cache_files] if one else [] for one in (chosen, held_out)
    )
    return {"files": files, "split": chosen, "held_out": measured, "held_out_split": held_out}


if __name__ == "__main__":
    try:
        answer = _main(*sys.argv[1:])
    except Exception as error:  # whatever the package raises is its answer
        answer = {"cause": f"{type(error).__name__}: {error}"}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
