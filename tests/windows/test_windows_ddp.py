"""Two ranks under the real run host on Windows: every mode, over gloo on loopback, and independent ranks without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.hosted_run import curve, host, lines, make_run, write_text

pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("mode", "asked"),
    [
        ("ddp", {}),
        ("independent", {}),
        ("independent", {"sync_every": 3, "merge_policy": "average"}),
        ("zero", {"zero_stage": 1}),
        ("zero", {"zero_stage": 2}),
        ("zero", {"zero_stage": 3}),
        ("fsdp", {}),
    ],
    ids=["ddp", "independent", "every third step", "zero 1", "zero 2", "zero 3", "fsdp"],
)
def test_two_ranks_train_commit_and_export(mode: str, asked: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="trains for real")
    folder = tmp_path / "Läufe mit Raum"
    folder.mkdir()
    text = write_text(tmp_path / "tëxt.txt", 20_000)
    store = make_run(folder / "run", text, mode, 2, steps=12, checkpoint_every_steps=6, lr=5e-3, **asked)
    assert host(store, timeout_s=240) == 0
    assert store.state().state == "finished"
    losses = curve(store)
    assert list(losses) == list(range(1, 13)) and losses[12] < losses[1] - 0.3
    assert {line["rank"] for line in lines(store, "step")} == {0, 1}
    assert lines(store, "launch")[0]["mode"] == mode and lines(store, "commit")
    assert not lines(store, "fallback")
    assert store.model.stat().st_size > 1_000
