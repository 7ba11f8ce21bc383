"""Texts of the benchmark page."""

from __future__ import annotations

from app.bench.bench_text import (
    TRAINING,
    UNFIXED,
    bench_news,
    folder_name,
    kind_titles,
    what_is_measured,
    why_not_measured,
)
from core.config.mode import Mode
from core.measure.bench.contenders import Kind
from tests.unit.core.measure.bench.made import WEAK, bench, run


def test_what_would_be_measured() -> None:
    assert what_is_measured(Kind.WEAK, run(4)).startswith("MiniGPT in DDP on 1, 2 and 4 devices, as set in New run.")
    assert what_is_measured(Kind.COMM, run(2)).startswith("MiniGPT on 2 devices")


def test_why_not() -> None:
    assert why_not_measured(Kind.WEAK, run(2), is_training=False) == ""
    assert why_not_measured(Kind.WEAK, run(2), is_training=True) == TRAINING
    assert why_not_measured(Kind.WEAK, None, is_training=True) == UNFIXED
    assert why_not_measured(Kind.WEAK, run(1), is_training=False).endswith("Choose at least two devices.")
    assert "--" not in why_not_measured(Kind.STRONG, run(2, Mode.INDEPENDENT), is_training=False)


def test_news_has_its_sentences_at_the_end_only() -> None:
    found = bench(Kind.WEAK, WEAK)
    assert bench_news(found).text == ""
    assert bench_news(found).columns[:2] == (("Devices", False, ""), ("Mode", True, ""))
    news = bench_news(found, is_over=True, no_pictures="this Python has no Qt.")
    assert news.text.splitlines()[1] == "Pictures are missing: this Python has no Qt."
    assert news.cells[1][0] == "2" and news.charts[0].target == 90


def test_names() -> None:
    assert folder_name(Kind.WEAK, "minigpt", "2026-11-26-120500") == "2026-11-26-120500-weak-minigpt"
    assert dict(kind_titles())["comm"] == "Communication"
