"""What is known of a column, and what is said of one that is not."""

from __future__ import annotations

from core.metrics.metric import METRICS, has_own_card, metric, metric_title, sort_key


def test_a_title_is_a_name_in_words() -> None:
    assert [metric_title(name) for name in ("approx_kl", "val_accuracy", "GPU_mem", "")] == [
        "Approx KL", "Val accuracy", "GPU mem", "",
    ]  # fmt: skip
    assert metric("approx_kl").title == "Approx KL" and metric("lr").title == "Learning rate"


def test_an_unknown_metric_has_its_own_card_before_those_that_matter_least() -> None:
    assert has_own_card("approx_kl") and has_own_card("lr")
    assert not any(map(has_own_card, ("step", "loss", "device_mem_bytes")))
    names = sorted(["data_wait_s", "zeta", "lr", "alpha", "loss"], key=sort_key)
    assert names == ["loss", "lr", "alpha", "zeta", "data_wait_s"]
    assert len({one.name for one in METRICS}) == len(METRICS)
