"""`RunConfig` and its table of fields agree, and a bad value raises at construction."""

from __future__ import annotations

import dataclasses

import pytest

from core.config.run_config import FIELDS, RunConfig
from core.errors import ConfigError


def test_every_field_has_a_spec_with_the_same_default() -> None:
    config = {f.name: f.default for f in dataclasses.fields(RunConfig) if f.name not in ("devices", "options")}
    config["env"] = None  # no variables, as text; the value is an empty mapping
    assert {spec.name: spec.default for spec in FIELDS} == config and RunConfig().env == {}


def test_every_field_says_what_it_does() -> None:
    assert [spec.name for spec in FIELDS if not spec.help.endswith(".")] == []


def test_a_bad_value_raises_at_construction() -> None:
    for make in (lambda: RunConfig(steps=0), lambda: RunConfig().replace(steps=0)):
        with pytest.raises(ConfigError) as caught:
            make()
        assert caught.value.field == "steps"


@pytest.mark.parametrize("devices", [(), ("",), ("cpu:1", " ")])
def test_devices_that_name_nothing_are_refused(devices: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="list of devices is empty"):
        RunConfig(devices=devices)


def test_as_dict_leaves_out_what_is_not_set() -> None:
    values = RunConfig(steps=5, options={"n_layer": 2}).as_dict()
    assert values["steps"] == 5
    assert values["options"] == {"n_layer": 2}
    assert "epochs" not in values


def test_the_dataset_is_trained_once_when_no_end_is_given() -> None:
    ends = ((None, None), (5, None), (5, 2), (None, 3))
    assert [RunConfig(steps=s, epochs=e).epoch_limit for s, e in ends] == [1, None, 2, 3]
