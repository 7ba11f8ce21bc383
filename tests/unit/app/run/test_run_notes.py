"""What a run said of how its devices share the work, in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.run.run_notes import RunNotes
from app.run_data.metrics_batch import MetricsBatch, Rows
from app.run_data.run_series import RunSeries

MODEL = {"event": "model", "parameters": 840_448, "trainable": 840_448, "trainable_bytes": 3_361_792}
LAUNCH: dict[str, Any] = {"event": "launch", "notes": ["Weights: of rank 1."]}
EXCHANGE = {"event": "exchange", "words": "Gradients go over gloo."}


def test_each_fact_is_a_sentence_and_the_newest_counts() -> None:
    run, facts = RunSeries(), RunNotes()
    assert facts.of(run) == ()
    shares = [{"event": "balance", "text": text} for text in ("rank 0 1.9 × rank 1: 42 + 22 of 64", "alike: 32 + 32")]
    run.apply(MetricsBatch([], [LAUNCH, MODEL, EXCHANGE, *shares]))
    assert facts.of(run) == (
        "The model has 840,448 parameters.",
        "Gradients go over gloo.",
        "Batch shares by measured speed: alike: 32 + 32.",
        "Weights: of rank 1.",
    )
    run.apply(MetricsBatch([], [{"event": "launch", "notes": []}]))
    assert facts.of(run) == ("The model has 840,448 parameters.",), "the attempt before shared the work otherwise"


def test_memory_as_it_was_predicted_and_measured() -> None:
    run, facts = RunSeries(), RunNotes()
    run.apply(MetricsBatch([], [{**LAUNCH, "notes": [], "predicted_bytes": 11 * 10**8}]))
    assert facts.of(run) == ("Highest peak memory of a device: 1.0 GiB predicted.",)
    peaks = [{"event": "memory", "rank": rank, "rss_bytes": size} for rank, size in ((0, 10**9), (1, 9 * 10**8))]
    run.apply(MetricsBatch([], peaks))
    assert facts.of(run) == ("Highest peak memory of a device: 1.0 GiB predicted, 0.93 GiB measured, error +10.0 %.",)
    run.apply(MetricsBatch([], [{**LAUNCH, "notes": [], "predicted_bytes": None}]))
    assert facts.of(run) == (), "another attempt, of which nothing is known"
    run.apply(MetricsBatch([], [{"event": "memory", "rank": 0, "rss_bytes": 10**9, "reserved_bytes": 4 * 10**9}]))
    assert facts.of(run) == ("Highest peak memory of a device: 3.7 GiB measured.",)


def test_which_device_the_others_wait_for_until_they_no_longer_do() -> None:
    run, facts = RunSeries(), RunNotes()
    text = "GPU 0 and GPU 2 wait 38 % of each step for GPU 1."
    late = {"event": "straggler", "ranks": [1], "waits": {"0": 0.4, "1": 0.0, "2": 0.36}, "text": text}
    run.apply(MetricsBatch([], [late]))
    assert facts.of(run) == (text,)
    alert = {"event": "alert", "kind": "straggler", "title": "GPU 1 slows down the other devices"}
    assert facts.slowed == {}
    run.apply(MetricsBatch([], [alert, {"event": "alert", "kind": "hang"}]))
    facts.of(run)
    assert facts.slowed == alert
    assert facts.pressing == {"event": "alert", "kind": "hang"}, "what is worse comes first"
    run.apply(MetricsBatch([], [{"event": "alert_over", "kind": "hang"}]))
    facts.of(run)
    assert facts.pressing == alert
    run.apply(MetricsBatch([], [late, {"event": "straggler", "ranks": [], "text": "They no longer wait."}]))
    assert facts.of(run) == () and facts.slowed == {}
    run.apply(MetricsBatch([], [late, {**LAUNCH, "notes": []}]))
    assert facts.of(run) == (), "another attempt, of which nothing is known"


def test_what_presses_and_what_ends_the_run_is_of_the_newest_attempt() -> None:
    run, facts = RunSeries(), RunNotes()
    alerts = {kind: {"event": "alert", "kind": kind} for kind in ("disk_low", "early_stop", "disk_full", "non_finite")}
    run.apply(MetricsBatch([], [{**LAUNCH, "notes": []}, alerts["non_finite"], alerts["disk_low"]]))
    facts.of(run)
    assert (facts.pressing, facts.stopping) == (alerts["disk_low"], {})
    run.apply(MetricsBatch([], [alerts["disk_full"]]))
    facts.of(run)
    assert facts.stopping == alerts["disk_full"]
    run.apply(MetricsBatch([], [{**LAUNCH, "notes": []}]))
    facts.of(run)
    assert facts.pressing == facts.stopping == {}


def test_time_as_it_was_predicted_and_achieved() -> None:
    run, facts = RunSeries(), RunNotes()
    predicted = {"predicted_step_s": 0.6, "predicted_speedup": 1.5, "one_samples_per_s": 20.0}
    run.apply(MetricsBatch([], [{**LAUNCH, "notes": [], "mode": "ddp", **predicted}]))
    text = "Time of a step: 600 ms predicted. Speed-up over one device: 1.5 × predicted."
    assert facts.of(run) == (text,)

    def steps(rank: int, first: int, number: int, step_s: float) -> Rows:
        numbers = np.arange(first, first + number, dtype=np.float64)
        values = {"step": numbers, "step_time_s": np.full(number, step_s), "samples_per_s": np.full(number, 16.0)}
        return Rows(f"rank{rank}", number, values)

    run.apply(MetricsBatch([steps(rank, 1, 3, 9.0) for rank in (0, 1)], []))
    assert facts.of(run) == (text,), "the first steps do not count"
    run.apply(MetricsBatch([steps(rank, 4, 5, 0.5) for rank in (0, 1)], []))
    assert facts.of(run) == (
        "Time of a step: 600 ms predicted, 500 ms achieved, error +20.0 %. "
        "Speed-up over one device: 1.5 × predicted, 1.6 × achieved.",
    )


def test_how_often_ranks_met() -> None:
    run, facts = RunSeries(), RunNotes()
    assert facts.of(run) == ()
    run.apply(MetricsBatch([], [{"event": "synchronised", "rounds": 3, "wait_s": 0.5, "bytes": 3_361_792.0}]))
    assert facts.of(run) == ("Synchronised 3 times: 3.4 MB sent per device, 0.5 s spent waiting.",)
    run.apply(MetricsBatch([], [{**LAUNCH, "mode": "zero", "notes": []}]))
    assert facts.of(run) == (), "it went on in a mode in which nobody meets now and then"


def test_events_that_come_afterwards_and_another_run() -> None:
    run, facts = RunSeries(), RunNotes()
    run.apply(MetricsBatch([], [EXCHANGE]))
    assert facts.of(run) == ("Gradients go over gloo.",)
    run.add_events_before([MODEL])
    assert facts.of(run) == ("The model has 840,448 parameters.", "Gradients go over gloo.")
    assert facts.of(RunSeries()) == ()
