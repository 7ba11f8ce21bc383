"""ZeRO by PyTorch's own engine on Windows: a stopped run, resumed, ends with the weights of one never stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.helpers.hosted_run import curve, host, lines, make_run, write_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

STEPS: Final = 24
SETTINGS: Final[dict[str, Any]] = {"steps": STEPS, "checkpoint_every_steps": 6, "lr": 5e-3, "zero_engine": "torch"}
LIMIT_S: Final = 280.0


@pytest.mark.parametrize("stage", [2, 3])
def test_a_sharded_run_stopped_and_resumed_has_the_weights_of_one_never_stopped(stage: int, tmp_path: Path) -> None:
    """Each rank writes its shards and takes them up again, in other processes."""
    pytest.importorskip("torch", reason="trains for real")
    text = write_text(tmp_path / "tëxt.txt", 20_000)
    whole, stopped = (make_run(tmp_path / name, text, "zero", 2, zero_stage=stage, **SETTINGS) for name in ("w", "s"))
    assert host(whole, timeout_s=LIMIT_S) == 0
    assert host(stopped, stop_at=8, timeout_s=LIMIT_S) == 0
    assert stopped.state().state == "stopped"
    stopped_at = stopped.state().step
    assert 8 <= stopped_at < STEPS
    assert host(stopped, timeout_s=LIMIT_S) == 0
    assert stopped.state().state == "finished"
    assert lines(stopped, "launch")[-1]["resumed_from"] == {"0": stopped_at, "1": stopped_at}
    assert not lines(stopped, "fallback")
    assert stopped.model.read_bytes() == whole.model.read_bytes()
    assert curve(stopped) == curve(whole)
