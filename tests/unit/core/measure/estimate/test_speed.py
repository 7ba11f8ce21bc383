"""Time, speed-up and traffic, against values computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.config.mode import Mode
from core.launch.resolved import ResolvedRun
from core.machine.devices.device import Device
from core.measure.estimate.memory import Layout
from core.measure.estimate.speed import (
    NO_LINK,
    NO_STEP,
    StepFigures,
    TimeEstimate,
    TimeFigures,
    Traffic,
    balance_gain,
    estimate_times,
    step_key,
    step_traffic,
    time_of,
)
from core.measure.link import Link
from tests.helpers.resolved_run import resolved_run
from tests.unit.core.measure.estimate.made import CONFIG, FIGURES, FOUND, LINK, MB, RUN


def times(run: ResolvedRun = RUN, found: TimeFigures = FOUND) -> dict[str, TimeEstimate]:
    return {time.name: time for time in estimate_times(run, FIGURES, found)}


def test_every_mode_has_its_time_and_speedup() -> None:
    found = times()
    one, ddp = found["single"], found["ddp"]
    assert (one.step_s, one.samples_per_s, one.tokens_per_s) == (1.0, 8.0, 800.0)
    assert (one.speedup, one.gain, one.exchange_s) == (1.0, "same", 0.0)
    # 100 MB of gradients through shared memory: 0.02 s.
    assert ddp.step_s == pytest.approx(1.18 + 0.02)
    assert ddp.samples_per_s == pytest.approx(16 / 1.2)
    assert ddp.speedup == pytest.approx(1.667, abs=1e-3)
    assert (ddp.gain, ddp.sent_bytes) == ("faster", 100 * MB)
    # 3600 steps of 16 samples; one device needs as many samples, not as many steps.
    assert ddp.hours == pytest.approx(1.2)
    assert one.hours == pytest.approx(2.0)
    # Half the update each, and 150 or 200 MB over gloo: 0.3 and 0.4 s.
    assert found["zero2"].step_s == pytest.approx(1.13 + 0.3)
    assert found["fsdp"].step_s == pytest.approx(1.13 + 0.4)
    independent = found["independent"]
    assert independent.step_s == pytest.approx(1.18)
    assert independent.samples_per_s == pytest.approx(2 * 8 / 1.18)
    assert time_of(tuple(found.values()), RUN) == ddp


def test_the_sync_interval_divides_what_is_waited() -> None:
    run = resolved_run(CONFIG.replace(sync_every=8), Mode.INDEPENDENT, 2)
    every = times(run)["independent"]
    assert every.exchange_s == pytest.approx(0.2 / 8)
    assert every.step_s == pytest.approx(1.18 + 0.025)


def test_unequal_devices_wait_for_the_slowest_unless_their_shares_are_balanced() -> None:
    cards = (Device("GPU-a", "cuda", 0, "Fast"), Device("GPU-b", "cuda", 1, "Slow"))
    run = replace(RUN, devices=cards)
    fast = StepFigures(8, pass_s=0.4, update_s=0.1)
    slow = StepFigures(8, pass_s=1.2, update_s=0.1)
    assert step_key(cards[0], run) == ("Fast", 0, 2)
    found = TimeFigures({("Fast", 0, 2): fast, ("Slow", 0, 2): slow, ("Fast", 0, 1): fast}, Link(1e6, 0.0, 2, "gloo"))
    assert times(run, found)["ddp"].step_s == pytest.approx(1.3, abs=1e-3)
    assert times(run, found)["independent"].samples_per_s == pytest.approx(8 / 0.5 + 8 / 1.3)
    balanced = replace(run, config=run.config.replace(balance="measured"))
    # 0.05 and 0.15 s a sample: 26.7 samples a second together, 16 of them in 0.6 s.
    assert times(balanced, found)["ddp"].step_s == pytest.approx(0.7, abs=1e-3)


def test_a_gain_is_one_only_beyond_the_error() -> None:
    nearly = {**FOUND.steps, ("cpu", 4, 2): replace(FOUND.steps["cpu", 4, 2], pass_s=1.6)}
    assert times(found=replace(FOUND, steps=nearly))["ddp"].speedup == pytest.approx(2 / 1.72)
    assert times(found=replace(FOUND, steps=nearly))["ddp"].gain == "same"


def test_fsdps_own_copies_are_in_the_exchange_where_they_were_timed() -> None:
    link = replace(LINK, sharded_mb_per_s=100.0, sharded_latency_s=0.001)
    found = times(found=replace(FOUND, link=link))
    # 100 MB of gradients, and 100 or 200 MB of weights, which count half; 9 parts, each 2 or 3 times.
    assert found["zero2"].exchange_s == pytest.approx(1.5 + 0.018)
    assert found["fsdp"].exchange_s == pytest.approx(2.0 + 0.027)
    assert found["ddp"].exchange_s == pytest.approx(0.02), "it does not shard"
    assert found["zero1"].exchange_s == times()["zero1"].exchange_s, "nor does stage 1 by FSDP"


def test_ranks_in_step_wait_for_whichever_is_slowest() -> None:
    waits = {**FOUND.steps, ("cpu", 4, 2): replace(FOUND.steps["cpu", 4, 2], wait_s=0.1)}
    found = times(found=replace(FOUND, steps=waits))
    assert found["ddp"].step_s == pytest.approx(1.3)
    assert found["independent"].step_s == pytest.approx(1.18), "each continues by itself"


def test_what_was_not_measured_is_not_guessed() -> None:
    nothing = times(found=TimeFigures())
    assert {time.reason for time in nothing.values()} == {NO_STEP}
    assert {time.speedup for time in nothing.values()} == {None}
    assert {time.gain for time in nothing.values()} == {"unknown"}
    linkless = times(found=replace(FOUND, link=None))
    assert (linkless["ddp"].reason, linkless["ddp"].step_s) == (NO_LINK, None)
    assert linkless["independent"].speedup is not None, "it sends nothing"
    epochs = resolved_run(CONFIG.replace(steps=None, epochs=2), Mode.DDP, 2)
    assert times(epochs)["ddp"].hours is None and times(epochs)["ddp"].speedup is not None


def test_what_balancing_would_bring_is_measured_not_guessed() -> None:
    cards = tuple(Device(f"GPU-{n}", "cuda", n, name) for n, name in enumerate(("RTX 4090", "RTX 4060 Ti")))
    run = replace(RUN, devices=cards)
    slow, fast = FOUND.steps[step_key(RUN.devices[0], RUN)], None
    fast = replace(slow, pass_s=slow.pass_s / 3, update_s=0.0)
    slow = replace(slow, update_s=0.0)
    timed = TimeFigures({step_key(cards[0], run): fast, step_key(cards[1], run): slow}, LINK)
    gain = balance_gain(run, FIGURES, timed)
    assert gain is not None and gain.shares == (12, 4) and gain.waiting == 0
    assert 1.5 < gain.speedup < 2.0 and gain.waits > 0.5
    even = TimeFigures({step_key(card, run): slow for card in cards}, LINK)
    assert balance_gain(run, FIGURES, even) is None, "it is not worth it"
    assert balance_gain(run, FIGURES, TimeFigures({}, LINK)) is None, "nothing was measured"
    balanced = replace(run, config=run.config.replace(balance="measured"))
    assert balance_gain(balanced, FIGURES, timed) is None
    independent = resolved_run(CONFIG, Mode.INDEPENDENT, 2)
    assert balance_gain(independent, FIGURES, FOUND) is None


# A tensor of 100 MB is summed in 0.2 s, through shared memory in 0.02 s.
SLOW = Link(mb_per_s=500.0, latency_s=0.001, ranks=2, backend="gloo", shared_mb_per_s=5000.0)


def layout(mode: Mode, stage: int = 0, **changes: object) -> Layout:
    values = {"by_deepspeed": False, "ranks": 2, "micro_batch": 8, "accumulation": 1, **changes}
    return Layout(mode, stage, **values)  # type: ignore[arg-type]


def test_ddp_sums_gradients_once_a_step() -> None:
    traffic = step_traffic(FIGURES, layout(Mode.DDP, accumulation=4), by_nccl=False)
    assert traffic == Traffic(100 * MB, 0.0, 4)  # 100 MB in buckets of 26.2 MB
    assert traffic.sent_bytes(2) == 100 * MB  # 2 (2 - 1) / 2
    assert traffic.sent_bytes(4) == 150 * MB  # 2 (4 - 1) / 4
    assert traffic.seconds(SLOW) == pytest.approx(0.2 + 4 * 0.001)
    assert traffic.seconds(SLOW, shared_memory=True) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("stage", "changes", "by_nccl", "sent"),
    [
        # W = T = 100 MB and two ranks: a gather or a reduce-scatter sends 50 MB, an all-reduce 100 MB.
        (1, {}, False, 150),  # all-reduce, then new weights
        (1, {"by_deepspeed": True}, True, 100),  # reduce-scatter and gather, as much as DDP
        (1, {"by_deepspeed": True}, False, 150),  # gloo's reduce-scatter is an all-reduce
        (2, {}, True, 100),
        (2, {}, False, 150),
        (2, {"accumulation": 4}, True, 250),  # one gather, four reduce-scatters
        (3, {}, True, 150),  # 1.5 times DDP's
        (3, {}, False, 200),
        (3, {"accumulation": 2}, True, 300),
        (3, {"narrow": True}, True, 100),  # weights are gathered in two bytes
    ],
)
def test_sharded_stages_send_what_the_zero_paper_says(
    stage: int, changes: dict[str, object], by_nccl: bool, sent: int
) -> None:
    traffic = step_traffic(FIGURES, layout(Mode.ZERO, stage, **changes), by_nccl=by_nccl)
    assert traffic.sent_bytes(2) == sent * MB


def test_fsdp_is_stage_three_and_pays_the_latency_of_each_block() -> None:
    traffic = step_traffic(FIGURES, layout(Mode.FSDP, 3), by_nccl=False)
    assert traffic == Traffic(100 * MB, 200 * MB, 9 * 3)  # 8 blocks and the rest: two gathers, one sum
    assert traffic.seconds(SLOW) == pytest.approx(0.2 + 0.2 + 27 * 0.001)


def test_independent_ranks_send_nothing_or_the_interval_divides() -> None:
    alone = layout(Mode.INDEPENDENT)
    assert step_traffic(FIGURES, alone, by_nccl=False) == Traffic()
    every = step_traffic(FIGURES, alone, by_nccl=False, sync_every=8)
    assert every.sent_bytes(2) == 12.5 * MB
    assert every.seconds(SLOW) == pytest.approx((0.2 + 4 * 0.001) / 8)
    assert step_traffic(FIGURES, layout(Mode.DDP, ranks=1), by_nccl=False).sent_bytes(1) == 0
