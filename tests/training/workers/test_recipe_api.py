"""A recipe that nobody here wrote: a folder of the user's, trained, stopped by its own fault, explained."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from core.run_folder.store import RunStore
from tests.helpers.hosted_run import curve, host, lines, make_run

pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(120)]

MANIFEST = """
format = "rankdeck-recipe"
version = 1
name = "line"
title = "A line"
description = "Fits a line."
"""

TRAIN = '''
"""y = 3 x + 1, from a text file of numbers."""

import numpy as np
import torch

from workers.recipe_api import Optimization, PreparedData, Run, Task
from shape import make_model


def build(run, folder):
    values = np.loadtxt(run.dataset_files()[0], dtype=np.float32)
    np.save(folder / "values.npy", values)
    return PreparedData(samples=len(values) - 16, val_samples=16)


def main(run: Run) -> None:
    run.prepare(lambda folder: build(run, folder))
    values = torch.from_numpy(np.load(run.data_dir / "values.npy"))
    run.fit(
        Task(
            model=make_model(),
            batch=lambda i: values[i],
            val_batch=lambda i: values[run.samples + i],
            loss=lambda model, v: (model(v[:, :1]) - v[:, 1:]).square().mean(),
            optimization=Optimization(kind=torch.optim.SGD, clip_norm=0.0),
        )
    )
'''

SHAPE = "import torch\n\n\ndef make_model():\n    return torch.nn.Linear(1, 1)\n"


def make_recipe(folder: Path, train: str = TRAIN) -> Path:
    recipe = folder / "line"
    recipe.mkdir()
    (recipe / "recipe.toml").write_text(MANIFEST, encoding="utf-8")
    (recipe / "train.py").write_text(train, encoding="utf-8")
    (recipe / "shape.py").write_text(SHAPE, encoding="utf-8")
    return recipe


def make_line_run(tmp_path: Path, train: str = TRAIN) -> RunStore:
    x = torch.linspace(-1, 1, 416)
    order = torch.randperm(416, generator=torch.Generator().manual_seed(0))
    text = tmp_path / "points.txt"
    text.write_text("".join(f"{x[i]:.5f} {3 * x[i] + 1:.5f}\n" for i in order), encoding="utf-8")
    recipe = make_recipe(tmp_path, train)
    return make_run(tmp_path / "run", text, "single", 1, recipe=str(recipe), epochs=3, batch_size=8, lr=0.1, options={})


def test_a_recipe_of_forty_lines(tmp_path: Path) -> None:
    store = make_line_run(tmp_path)
    assert host(store) == 0
    assert len(curve(store)) == 3 * 400 / 8
    weights = load_file(store.model)
    assert weights["weight"].item() == pytest.approx(3.0, abs=0.01)
    assert weights["bias"].item() == pytest.approx(1.0, abs=0.01)
    assert lines(store, "eval")[-1]["val_loss"] < 1e-3
    assert len(TRAIN.strip().splitlines()) <= 40


@pytest.mark.parametrize(
    ("old", "new", "title", "in_cause"),
    [
        ("import numpy as np", "import a_package_nobody_has", "A package is missing", "a_package_nobody_has"),
        ("def main(run: Run)", "def start(run: Run)", "Invalid setting", "no function main"),
        ("len(values) - 16", "0", "The dataset cannot be used", "single training sample"),
        ("kind=torch.optim.SGD", "kind=1 / 0", "The training code failed", "ZeroDivisionError"),
    ],
)
def test_a_recipe_that_fails_says_why(tmp_path: Path, old: str, new: str, title: str, in_cause: str) -> None:
    store = make_line_run(tmp_path, TRAIN.replace(old, new))
    assert host(store) in (1, 2)
    error = store.state().error
    assert error is not None
    assert error["title"] == f"CPU 0: {title}"
    assert in_cause in error["cause"] and error["next_step"]
