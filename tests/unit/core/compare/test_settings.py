"""Settings beside each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.compare.results import Row
from core.compare.settings import changed_settings, environment_rows, read_environment, read_settings, setting_rows
from core.config import RunConfig
from core.formatting import UNKNOWN
from core.recipes.catalog import get_recipe
from core.recipes.manifest import recipe_defaults
from core.run_folder.record import read_record
from core.run_folder.store import RunStore, read_entry


def rows(*stores: RunStore) -> dict[str, Row]:
    entries = [read_entry(store.dir) for store in stores]
    return {row.name: row for row in setting_rows([read_settings(read_record(entry)) for entry in entries if entry])}


def run(folder: Path, **changes: Any) -> RunStore:
    return RunStore.create(folder, RunConfig(**changes))


def test_defaults_of_the_recipe_are_filled_in_with_labels(tmp_path: Path) -> None:
    found = rows(run(tmp_path, options={"n_layer": 3}), run(tmp_path))
    assert found["n_layer"].label == "Layers"
    assert found["n_layer"].values == (3, 4)
    assert found["lr"].label == "Learning rate" and not found["lr"].differs
    assert found["n_head"].values[0] is not None and not found["n_head"].differs


def test_the_batch_is_worked_out_for_the_ranks(tmp_path: Path) -> None:
    stores = run(tmp_path, batch_size=4), run(tmp_path, batch_size=4)
    stores[1].write_state(stores[1].stored_state().replace(mode="ddp", world_size=2))
    found = rows(*stores)
    one, two = found["global_batch_size"].values
    assert two == 2 * one
    assert found["mode"].texts[1] == "DDP × 2"


def test_values_read_as_people_write_them(tmp_path: Path) -> None:
    found = rows(run(tmp_path, checkpoint_every_s=60.0, strict=True, env={"A": "1"}, lr=3e-4), run(tmp_path))
    assert found["checkpoint_every_s"].texts == ("60 s", "300 s")
    assert found["checkpoint_every_s"].label == "Save every (seconds)"
    assert found["strict"].texts == ("yes", "no")
    assert found["env"].texts == ("A=1", UNKNOWN)
    assert found["lr"].texts == ("0.0003", "0.001")


def test_settings_that_cannot_be_read_or_completed(tmp_path: Path) -> None:
    gone = run(tmp_path, recipe="no-such-recipe", options={"odd": 1}, lr=0.5)
    damaged = run(tmp_path)
    damaged.run_toml.write_text("[", encoding="utf-8")
    found = rows(gone, damaged)
    assert found["odd"].texts == ("1", UNKNOWN)
    assert found["lr"].texts == ("0.5", UNKNOWN)


def test_what_differs_from_the_recipes_defaults() -> None:
    recipe = get_recipe("minigpt")
    plain = RunConfig(**recipe_defaults(recipe))
    assert changed_settings(plain) == ()
    changed = plain.replace(lr=3e-4, devices=("cuda:0", "cuda:1"), options={**plain.options, "n_layer": 6})
    found = [(one.label, one.text, one.default) for one in changed_settings(changed)]
    assert found == [("Devices", "cuda:0, cuda:1", "auto"), ("Learning rate", "0.0003", "0.002"), ("Layers", "6", "4")]


def test_epochs_in_place_of_steps_are_one_difference() -> None:
    plain = RunConfig(**recipe_defaults(get_recipe("minigpt")))
    assert [one.name for one in changed_settings(plain.replace(epochs=2, steps=None))] == ["epochs"]


def test_settings_of_a_recipe_that_is_gone_have_no_defaults() -> None:
    found = changed_settings(RunConfig(recipe="no-such-recipe", options={"odd": 1}))
    assert [(one.name, one.text, one.default) for one in found] == [("odd", "1", UNKNOWN)]


def test_versions_and_device_names_are_rows_of_a_comparison(tmp_path: Path) -> None:
    cards = [{"name": "RTX 4090"}, {"name": "RTX 4090"}, {"name": "CPU"}]
    (tmp_path / "environment.json").write_text(json.dumps({"torch": "2.13.0", "devices": cards}), encoding="utf-8")
    found = {row.name: row for row in environment_rows([read_environment(RunStore(tmp_path)), {"torch": "2.11.0"}])}
    assert list(found) == ["torch", "devices"]  # a driver is known of none
    assert found["torch"].texts == ("2.13.0", "2.11.0")
    assert found["devices"].texts == ("2 × RTX 4090, CPU", UNKNOWN)


@pytest.mark.parametrize("damaged", ["[1", "[1]"])
def test_a_damaged_environment_is_as_none(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "environment.json").write_text(damaged, encoding="utf-8")
    assert read_environment(RunStore(tmp_path)) == {}
