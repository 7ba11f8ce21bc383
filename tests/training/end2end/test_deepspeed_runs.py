"""DeepSpeed under the real run host: stop and resume, and what happens where it cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from core.run_folder.store import RunStore
from tests.helpers.deepspeed_here import needs_deepspeed
from tests.helpers.forking import ROOT
from tests.helpers.hosted_run import curve, host, lines, make_run, write_text

pytest.importorskip("torch", reason="trains for real")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

DYING = """
import json, os
if json.loads(os.environ.get("RANKDECK_RANK", "{}")).get("engine", "-") == os.environ.get("TEST_DIES_WITH"):
    os._exit(7)
"""
REASON = "DeepSpeed could not be imported (RuntimeError: this build is broken)."


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which all is as here, but for a DeepSpeed that cannot be imported, and ranks that can die."""
    folder = tmp_path_factory.mktemp("environment")
    venv.EnvBuilder(symlinks=os.name != "nt").create(folder)
    scheme = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", scheme))
    here = [path for path in sys.path if path.endswith("site-packages")]
    (site / "here.pth").write_text("\n".join(here), encoding="utf-8")
    (site / "deepspeed").mkdir()
    (site / "deepspeed" / "__init__.py").write_text('raise RuntimeError("this build is broken")\n', encoding="utf-8")
    (site / "dying.py").write_text(DYING, encoding="utf-8")
    (site / "dying.pth").write_text("import dying", encoding="utf-8")
    return Path(sysconfig.get_path("scripts", "venv", scheme)) / ("python.exe" if os.name == "nt" else "python")


def run_host(python: Path, store: RunStore, dies_with: str = "") -> int:
    """The host's exit code; ranks whose engine is `dies_with` die as they start."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TEST_DIES_WITH": dies_with}
    command = [str(python), "-m", "core.host", str(store.dir)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=120).returncode


def test_a_broken_deepspeed_is_replaced_by_pytorchs_engine_and_the_reason_is_said(python: Path, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    store = make_run(tmp_path / "run", text, "zero", 2, steps=4, zero_stage=2, offload_optimizer=True, strict=False)
    assert run_host(python, store) == 0
    state = store.stored_state()
    assert (state.state, state.mode, state.world_size) == ("finished", "zero", 2)
    assert state.fallback is not None
    assert state.fallback.startswith("DeepSpeed could not start ZeRO stage 2 on 2 devices") and REASON in state.fallback
    first, second = lines(store, "launch")
    assert first["engine"] == "deepspeed" and first["notes"][0].startswith("ZeRO stage 2 by DeepSpeed")
    assert second["engine"] == "torch"
    assert second["notes"][0] == "ZeRO stage 2 by PyTorch's own engine: DeepSpeed could not start."
    (event,) = lines(store, "fallback")
    assert REASON in event["reason"] and (event["mode"], event["engine"]) == ("zero", "torch")
    assert [line["mode"] for line in lines(store, "launch")] == ["zero", "zero"]
    assert store.model.is_file()


@needs_deepspeed
def test_a_setting_that_deepspeed_does_not_accept_ends_the_run_before_its_first_step(tmp_path: Path) -> None:
    """What the person asked for is wrong: no other engine is tried."""
    text = write_text(tmp_path / "text.txt")
    asked = '{"zero_optimization": {\n"overlap_com": true}}'
    store = make_run(tmp_path / "run", text, "zero", 2, steps=4, zero_stage=2, deepspeed_config=asked, strict=False)
    assert host(store) == 2
    state = store.stored_state()
    assert (state.state, state.step, state.fallback) == ("failed", 0, None)
    assert state.error is not None
    assert state.error["title"].endswith("The DeepSpeed configuration cannot be used")
    assert "does not accept overlap_com: there is no such setting" in state.error["cause"]
    assert "Correct or remove it" in state.error["next_step"]


def test_independent_devices_are_left_where_pytorchs_engine_cannot_start_either(python: Path, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    store = make_run(tmp_path / "run", text, "zero", 2, steps=4, zero_stage=1, strict=False)
    assert run_host(python, store, dies_with="torch") == 0
    state = store.stored_state()
    assert (state.state, state.mode, state.world_size) == ("finished", "independent", 2)
    assert state.fallback is not None and "never an average" in state.fallback and "exit code 7" in state.fallback
    first, second = lines(store, "fallback")
    assert (first["engine"], second["mode"]) == ("torch", "independent") and "engine" not in second
    assert [line["mode"] for line in lines(store, "launch")] == ["zero", "zero", "independent"]
    (merge,) = lines(store, "merge")
    assert merge["policy"] == "best" and merge["chosen"].startswith("rank ")
    assert store.model.is_file()


def test_strict_fails_instead(python: Path, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    store = make_run(tmp_path / "run", text, "zero", 2, steps=4, zero_stage=3, strict=True)
    assert run_host(python, store) == 1
    state = store.stored_state()
    assert (state.state, state.fallback) == ("failed", None)
    assert state.error is not None and REASON in state.error["cause"]
    assert not lines(store, "fallback")


@needs_deepspeed
def test_a_run_under_deepspeed_stops_and_goes_on_as_if_it_had_not(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    settings = {"steps": 12, "zero_stage": 3, "zero_engine": "deepspeed", "grad_accum_steps": 2}
    whole = make_run(tmp_path / "whole", text, "zero", 2, **settings)
    assert host(whole) == 0
    parted = make_run(tmp_path / "parted", text, "zero", 2, **settings)
    assert host(parted, stop_at=4) == 0
    assert host(parted) == 0

    assert sorted(curve(whole)) == list(range(1, 13))
    assert curve(parted) == curve(whole)
    assert parted.model.read_bytes() == whole.model.read_bytes()
    for rank in (0, 1):
        log = (whole.dir / "logs" / f"rank{rank}.log").read_text(encoding="utf-8")
        assert "[INFO]" not in log and "FutureWarning" not in log and "compil" not in log, log
