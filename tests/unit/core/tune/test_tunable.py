"""Which runs can be tuned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.config.mode import Mode
from core.errors import ConfigError
from core.tune.tunable import check_tunable
from tests.unit.core.tune.made import RUN, run


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
