"""How long a run is before its data is read, and what is odd about it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from core.config.run_config import RunConfig
from core.data.dataset import DatasetIdentity
from core.launch.resolved import ResolvedRun, resolve
from core.launch.run_length import run_notes, samples_known, unequal_shares
from core.machine.devices import Device
from core.machine.platform import Platform
from core.recipes.catalog import get_recipe
from core.recipes.manifest import apply_recipe

pytestmark = pytest.mark.windows
LINUX = Platform("linux", "2.13.0+cpu", None, 4)
SLOTS = [Device(f"cpu:{n}", "cpu", n, "Processor") for n in range(4)]
TEXT = DatasetIdentity("a.txt", "file", 1, 10_000, "")


def run(mode: str = "independent", **values: Any) -> ResolvedRun:
    recipe = get_recipe("minigpt")
    options = values.pop("options", {})
    given = {"devices": ("cpux2",), "mode": mode, "batch_size": 4, **values}
    config = apply_recipe(RunConfig(**given, options=options), recipe)
    return resolve(config, recipe, SLOTS, LINUX)


@pytest.mark.parametrize(
    ("dataset", "options", "known"),
    [
        (TEXT, {}, True),
        (TEXT, {"tokenizer": "bpe"}, False),
        (dataclasses.replace(TEXT, text_bytes=30_000), {}, False),  # packed, or a table
    ],
)
def test_steps_are_known_where_each_byte_is_a_token(
    dataset: DatasetIdentity, options: dict[str, Any], known: bool
) -> None:
    assert samples_known(run(options=options), dataset) is known


def test_a_warm_up_that_is_as_long_as_the_run_gets_a_note() -> None:
    (note,) = run_notes(run("ddp", steps=20, options={"warmup_steps": 20}), None)
    assert note.startswith("The warm-up has 20 steps and the run 20")
    assert run_notes(run("ddp", steps=21, options={"warmup_steps": 20}), None) == ()
    assert run_notes(run("ddp", epochs=1, options={"warmup_steps": 20}), None) == ()
    (note,) = run_notes(run("ddp", epochs=2, options={"warmup_steps": 20}), 80)
    assert "the run 20" in note


def test_unequal_shares_are_named_with_a_chunk_size_that_mends_them() -> None:
    cause, advice = unequal_shares(1490, run(epochs=1, dataset_chunk_size=500))
    assert "248 and 125 steps" in cause
    size = int(advice.split(" of ")[1].split()[0])
    assert size <= 500 and unequal_shares(1490, run(epochs=1, dataset_chunk_size=size)) == ()


@pytest.mark.parametrize(
    "values",
    [
        {"epochs": 2},  # a chunk's owner moves on with each epoch
        {"steps": 100},
        {"steps": 100, "epochs": 1},
        {"epochs": 1, "mode": "ddp"},
    ],
)
def test_shares_that_do_not_matter_are_not_named(values: dict[str, Any]) -> None:
    assert unequal_shares(1500, run(**{"dataset_chunk_size": 500, **values})) == ()
