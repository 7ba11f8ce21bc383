"""Starts a recipe of one's own: a folder with a form and forty lines that train at once, in every mode.

`docs/recipes.md` shows the very same text.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
from pathlib import Path
from typing import Final

from core.errors import UsageError
from core.files.atomic import explain, replace_with_retry, write_atomic
from core.recipes.catalog import find_recipes, user_recipes_folder

MAX_NAME: Final = 64
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
# Windows takes these for devices, in every folder and with any ending.
_DEVICE_NAMES: Final = frozenset(("con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(10))))

MANIFEST: Final = """\
format = "rankdeck-recipe"
version = 1
name = "NAME"
title = "NAME"
description = "Learns which byte comes after which."
options = "train.py"

[defaults]
steps = 200
batch_size = 8
seq_len = 64
lr = 1e-2
eval_every = 50

[[fields]]
name = "width"
label = "Width"
type = "int"
default = 64
minimum = 1
maximum = 4096
common = true
help = "Numbers that stand for one byte inside the model."
"""

TRAIN: Final = '''\
"""Learns which byte comes after which in a text. It trains as it stands; make it yours."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from rankdeck.recipe import PreparedData, Run, Task, read_options


@dataclass(frozen=True)
class Options:  # the fields of recipe.toml
    width: int


def build(run, folder):  # once, on rank 0: the dataset as one array; a sample is seq_len bytes and the next one
    text = b"\\n".join(path.read_bytes() for path in run.dataset_files())
    np.save(folder / "bytes.npy", np.frombuffer(text, dtype=np.uint8))
    samples = (len(text) - 1) // run.config.seq_len
    held_out = max(1, samples // 20)
    return PreparedData(samples=samples - held_out, val_samples=held_out)


def main(run: Run) -> None:  # on every rank: data, model, loss; the rest is the trainer's business
    options = read_options(run, Options)
    run.prepare(lambda folder: build(run, folder))
    text, length, width = np.load(run.data_dir / "bytes.npy"), run.config.seq_len, options.width

    def batch(samples):  # numbers of samples, (batch,) -> bytes, (batch, seq_len + 1)
        places = samples[:, None] * length + np.arange(length + 1)
        return torch.from_numpy(text[places].astype(np.int64))

    def loss(model, window):  # call the model that is given: it may be wrapped
        return nn.functional.cross_entropy(model(window[:, :-1]).flatten(0, 1).float(), window[:, 1:].flatten())

    model = nn.Sequential(nn.Embedding(256, width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 256))
    run.fit(
        Task(model=model, batch=batch, val_batch=lambda i: batch(run.samples + i), loss=loss, tokens_per_sample=length)
    )
'''


def new_recipe(name: str, folder: Path | None = None) -> Path:
    """Make a recipe's folder, whole or not at all, and return it.

    Args:
        name: Raises `UsageError` where it is taken or no recipe can have it.
        folder: The folder of recipes to put it in; None: `core.recipes.catalog.user_recipes_folder`.
    """
    parent = user_recipes_folder() if folder is None else folder.expanduser().absolute()
    check_name(name)
    taken = next((recipe for recipe in find_recipes([parent]) if recipe.name == name), None)
    target = parent / name
    if target.exists() or target.is_symlink():
        raise _refused(f"{target} is there already.", "Choose another name, or remove that folder first.")
    if taken is not None:
        raise _refused(f"The name {name!r} is taken by the recipe in {taken.folder}.", "Choose another name.")
    unfinished = parent / f".{name}-{secrets.token_hex(4)}"
    try:
        unfinished.mkdir(parents=True)
        write_atomic(unfinished / "recipe.toml", MANIFEST.replace("NAME", name))
        write_atomic(unfinished / "train.py", TRAIN)
        replace_with_retry(unfinished, target)
    except OSError as error:
        raise explain(error, f"{target} could not be made") from error
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(unfinished)
    return target


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise _refused(
            f"{name!r} cannot be a recipe's name: it begins with a small letter, then come small letters a to z, "
            f"digits, - and _, at most {MAX_NAME} in all.",
            "Choose such a name, for example my-model.",
        )
    if name in _DEVICE_NAMES:
        raise _refused(f"Windows keeps the name {name!r} for a device.", f"Choose another, for example {name}-model.")


def _refused(cause: str, next_step: str) -> UsageError:
    return UsageError(cause, next_step, title="No recipe was made")
