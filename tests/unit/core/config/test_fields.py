"""A field's types, limits and words."""

from __future__ import annotations

import pytest

from core.config.fields import FieldSpec, FieldValue
from core.config.run_config import FIELD_BY_NAME
from core.errors import ConfigError

STEPS = FieldSpec("steps", "Steps", "int", None, 1, 1000, optional=True)
RATE = FieldSpec("lr", "Learning rate", "float", 0.001, 0.0, 100.0)
MODE = FieldSpec("mode", "Mode", "choice", "auto", choices=("auto", "ddp"))
STRICT = FieldSpec("strict", "Strict", "bool", False)
DATA = FieldSpec("dataset_file", "Data", "path", "x")


@pytest.mark.parametrize(
    ("spec", "text", "value"),
    [
        (STEPS, "12", 12),
        (STEPS, " 1_000 ", 1000),
        (STEPS, "1e2", 100),
        (STEPS, "", None),
        (STEPS, "none", None),
        (RATE, "3e-4", 3e-4),
        (RATE, "1", 1.0),
        (MODE, "ddp", "ddp"),
        (STRICT, "Yes", True),
        (STRICT, "0", False),
        (DATA, "none", "none"),
    ],
)
def test_text_is_read_in_the_fields_type(spec: FieldSpec, text: str, value: FieldValue) -> None:
    parsed = spec.parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("spec", "text", "words"),
    [
        (STEPS, "0", "below 1"),
        (STEPS, "1001", "above 1000"),
        (STEPS, "1.5", "not a whole number"),
        (STEPS, "many", "not a number"),
        (STEPS, "9" * 5000, "not a finite number"),
        (STEPS, "x" * 5000, "..."),
        (RATE, "nan", "not a finite number"),
        (RATE, "inf", "not a finite number"),
        (RATE, "", "nothing was given"),
        (MODE, "dpp", "not one of the choices"),
        (STRICT, "maybe", "neither true nor false"),
    ],
)
def test_a_wrong_value_names_the_field_and_what_is_allowed(spec: FieldSpec, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        spec.parse(text)
    assert caught.value.field == spec.name
    assert words in caught.value.cause
    assert spec.allowed() in caught.value.next_step
    assert len(caught.value.cause) < 200


def test_a_huge_whole_number_is_too_large_for_a_float() -> None:
    with pytest.raises(ConfigError, match="too large"):
        FieldSpec("x", "X", "float").check(10**400)


@pytest.mark.parametrize("value", [True, "12", 1.5, float("nan")])
def test_a_number_of_the_wrong_type_is_refused(value: FieldValue) -> None:
    with pytest.raises(ConfigError):
        STEPS.check(value)


@pytest.mark.parametrize(
    ("spec", "value"), [(STEPS, 7), (STEPS, None), (RATE, 1e-05), (RATE, 0.1 + 0.2), (STRICT, True), (MODE, "ddp")]
)
def test_text_reads_back_as_the_same_value(spec: FieldSpec, value: FieldValue) -> None:
    assert spec.parse(spec.text(value)) == value


def test_a_choice_that_is_misspelt_names_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        MODE.parse("dpp")
    assert caught.value.next_step.startswith("Did you mean ddp?")


@pytest.mark.parametrize(
    ("wanted", "text", "matters"),
    [("a|b", "b", True), ("a|b", "c", False), ("!a", "b", True), ("*", "", False), ("", "", True)],
)
def test_a_field_can_depend_on_what_another_holds(wanted: str, text: str, matters: bool) -> None:
    spec = FieldSpec("heads", "Heads", "int", when=("model", wanted))
    assert spec.matters({"model": text}) is matters and spec.matters({})


@pytest.mark.parametrize("name", ["stop_at", "max_hours", "log_file", "model", "deepspeed_config", "eval_every"])
@pytest.mark.parametrize("text", ["none", " None ", ""])
def test_one_word_empties_every_optional_setting(name: str, text: str) -> None:
    spec = FIELD_BY_NAME[name]
    assert spec.optional and spec.parse(text) is None and spec.check(text.strip()) is None


def test_a_number_with_two_meanings_is_refused_with_both() -> None:
    with pytest.raises(ConfigError, match=r"'1\.000' can be read as 1 and as 1000") as raised:
        FIELD_BY_NAME["steps"].parse("1.000")
    assert raised.value.next_step == "Write 1000 or 1."
    assert FIELD_BY_NAME["lr"].parse("0,001") == 0.001 and FIELD_BY_NAME["max_hours"].parse("90 min") == 1.5
