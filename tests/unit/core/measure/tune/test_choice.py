"""Choices of settings, and runs that can be tuned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.config import RunConfig
from core.config.mode import Mode
from core.errors import ConfigError
from core.measure.tune.choice import Choice, changes_flags, changes_text, check_tunable
from tests.helpers.resolved_run import resolved_run
from tests.unit.core.measure.tune.made import RUN, START, run


def test_a_run_has_a_choice_and_no_changes() -> None:
    assert Choice.of(RUN) == START
    assert START.changes(RUN) == {}
    assert START.applied(RUN) is RUN
    assert Choice.of(run(Mode.FSDP)).exchange == "" == Choice.of(run(Mode.INDEPENDENT)).exchange
    assert Choice.of(run(Mode.ZERO, zero_stage=1, zero_engine="torch")).exchange == "auto"
    assert Choice.of(resolved_run(RunConfig(), Mode.DDP, 2)).checkpointing is None


def test_changes_make_the_run_that_is_tried() -> None:
    choice = replace(START.in_micro_batches(16), exchange="plain", checkpointing=True)
    changes = choice.changes(RUN)
    assert changes == {
        "batch_size": 16,
        "grad_accum_steps": 1,
        "gradient_exchange": "plain",
        "options": {"grad_checkpointing": True},
    }
    tried = choice.applied(RUN)
    assert Choice.of(tried) == choice
    assert tried.batch.global_ == RUN.batch.global_ == 32
    assert changes_text(changes) == "micro-batch 16, accumulation 1, all-reduce plain, gradient checkpointing on"
    assert changes_flags(changes) == [
        *("--batch-size", "16", "--grad-accum-steps", "1", "--gradient-exchange", "plain"),
        *("--set", "grad_checkpointing=true"),
    ]


def test_what_is_not_possible_is_refused() -> None:
    with pytest.raises(ConfigError, match="gradient_exchange"):
        replace(START, exchange="pigeons").applied(RUN)


def test_torch_compile_is_a_choice_where_there_is_a_compiler() -> None:
    assert Choice.of(RUN).compiles is None
    able = replace(RUN, platform=replace(RUN.platform, cxx="/usr/bin/g++"))
    assert Choice.of(able).compiles is False
    changes = replace(Choice.of(able), compiles=True).changes(able)
    assert changes == {"torch_compile": True}
    assert changes_text(changes) == "torch.compile on" and changes_flags(changes) == ["--torch-compile"]
    assert replace(Choice.of(able), compiles=True).applied(able).compiles


def test_a_recipe_in_any_mode_of_pytorch_can() -> None:
    check_tunable(RUN)
    check_tunable(run(Mode.FSDP))
    check_tunable(run(Mode.ZERO, zero_engine="torch"))


def test_a_script_and_deepspeed_cannot() -> None:
    with pytest.raises(ConfigError, match="script"):
        check_tunable(replace(RUN, recipe=replace(RUN.recipe, self_contained=True)))
    with pytest.raises(ConfigError, match="DeepSpeed"):
        check_tunable(replace(RUN, choice=replace(RUN.choice, engine="deepspeed")))


def test_a_compiled_model_would_be_compiled_again_in_every_trial() -> None:
    compiled = replace(
        RUN, platform=replace(RUN.platform, cxx="/usr/bin/g++"), config=RUN.config.replace(torch_compile=True)
    )
    with pytest.raises(ConfigError, match="again"):
        check_tunable(compiled)
    check_tunable(replace(compiled, platform=replace(RUN.platform, cxx=None)))
