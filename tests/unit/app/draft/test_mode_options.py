"""Which settings of a mode can be chosen, and why others cannot."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from app.draft.mode_options import NO_DEEPSPEED, ModeOptions

OFFLOADS = {"offload_optimizer", "offload_parameters"}


@pytest.mark.parametrize(
    ("deepspeed", "chosen", "engine"),
    [
        (True, {}, "deepspeed"),
        (False, {}, "torch"),
        (False, {"zero_engine": "auto"}, "torch"),
        (True, {"zero_engine": "torch"}, "torch"),
        (False, {"zero_engine": "deepspeed"}, "deepspeed"),
    ],
)
def test_the_engine_is_the_chosen_one_or_the_one_that_is_there(
    deepspeed: bool, chosen: Mapping[str, str], engine: str
) -> None:
    assert ModeOptions(deepspeed=deepspeed).engine(chosen) == engine


@pytest.mark.parametrize(
    ("options", "mode", "texts", "fields"),
    [
        (ModeOptions(), "zero", {}, set()),
        (ModeOptions(), "zero", {"zero_engine": "torch"}, {"offload_optimizer"}),
        (ModeOptions(), "zero", {"zero_engine": "torch", "zero_stage": "1"}, {"offload_optimizer"}),
        (ModeOptions(), "zero", {"zero_engine": "torch", "zero_stage": "2"}, set()),
        (ModeOptions(), "fsdp", {"zero_engine": "torch"}, set()),
        (ModeOptions(deepspeed=False), "zero", {}, {"offload_optimizer", "deepspeed_config"}),
        (ModeOptions(on_cpu=True), "zero", {"zero_stage": "3"}, OFFLOADS),
        (ModeOptions(on_cpu=True, deepspeed=False), "fsdp", {}, {*OFFLOADS, "deepspeed_config"}),
    ],
)
def test_settings_that_mean_nothing_have_a_reason(
    options: ModeOptions, mode: str, texts: Mapping[str, str], fields: set[str]
) -> None:
    reasons = options.reasons(mode, texts)
    assert reasons.keys() == fields
    assert reasons.get("deepspeed_config", NO_DEEPSPEED) == NO_DEEPSPEED
    if "offload_optimizer" in reasons:
        assert ("main memory" if options.on_cpu else "stage 1") in reasons["offload_optimizer"]
