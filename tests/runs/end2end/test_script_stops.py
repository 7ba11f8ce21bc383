"""A stop reaches every process of a script, as Ctrl+C in a terminal does: workers, spawned ranks, loaders."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.cli import main
from tests.helpers.host_fixture import STOPPED
from tests.helpers.script_runs import MakeScriptRun

SPAWNED = """
    import time
    import torch.multiprocessing as mp

    def work(number):
        step = 0
        while True:
            step += 1
            if number == 0: print(f"step {step} loss {1 / step:.4f}", flush=True)
            time.sleep(0.02)

    if __name__ == "__main__":
        mp.spawn(work, nprocs=2)
"""
WORKERS = """
    import multiprocessing, time

    def work(number):
        step = 0
        while True:
            step += 1
            if number == 0: print(f"step {step} loss {1 / step:.4f}", flush=True)
            time.sleep(0.02)

    if __name__ == "__main__":
        multiprocessing.set_start_method("spawn")
        workers = [multiprocessing.Process(target=work, args=(number,)) for number in range(2)]
        for worker in workers: worker.start()
        for worker in workers: worker.join()
"""
LOADER = """
    import time
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self): return 1_000_000
        def __getitem__(self, index):
            time.sleep(0.01)
            return torch.zeros(1)

    if __name__ == "__main__":
        for step, batch in enumerate(DataLoader(Slow(), 2, num_workers=2)):
            print(f"step {step} loss {1 / (step + 1):.4f}", flush=True)
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SPAWNED, marks=[pytest.mark.slow, pytest.mark.second_tier], id="torch.multiprocessing.spawn"),
        pytest.param(WORKERS, marks=pytest.mark.windows, id="multiprocessing"),
        pytest.param(LOADER, marks=pytest.mark.slow, id="DataLoader"),
    ],
)
def test_a_stop_reaches_every_process_of_a_script(script_run: MakeScriptRun, text: str) -> None:
    run = script_run(text, options={"stop_deadline_s": 20.0}, devices=("cpu:1",), stop_timeout_s=40.0).start()
    run.wait_for_step(3)
    state = run.stop().end()
    assert (state.state, state.exit_code, state.error) == (STOPPED, 0, None)
    assert not run.events("alert"), run.events("alert")  # it ended by itself, and need not be ended by force
    run.assert_nothing_left()


@pytest.mark.windows
def test_a_stop_and_a_resume_say_what_they_do_to_a_script(
    script_run: MakeScriptRun, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "import time\nfor step in range(100_000): print(f'step {step} loss 1.5', flush=True) or time.sleep(0.02)\n"
    run = script_run(text, devices=("cpu:1",)).start()
    run.wait_for_step(3)
    assert main(["stop", str(run.run_dir)]) == 0
    run.end()
    assert main(["resume", str(run.run_dir), "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "Asked the script to stop." in told and "committed" not in told
    assert "The script is started again. Where it continues is up to the script." in told
    assert "Weights" not in told and "Data:" not in told and "Trains until" not in told


@pytest.mark.spawned
@pytest.mark.skipif(sys.platform == "win32", reason="under Windows a script shares its rank's console")
def test_a_stop_leaves_processes_alone_that_left_the_scripts_group(script_run: MakeScriptRun) -> None:
    text = """
        import subprocess, sys, time
        code = "import time\\ntry: time.sleep(600)\\nexcept KeyboardInterrupt: print('the other heard it', flush=True)"
        subprocess.Popen([sys.executable, "-c", code], process_group=0)
        step = 0
        while True:
            step += 1
            print(f"step {step} loss {1 / step:.4f}", flush=True)
            time.sleep(0.05)
    """
    run = script_run(text, devices=("cpu:1",)).start()
    run.wait_for_step(10)
    assert run.stop().end().state == STOPPED
    assert "KeyboardInterrupt" in run.printed() and "the other heard it" not in run.printed()
    run.assert_nothing_left()


FALLING = """
    import time

    for step in range(1, 100_000):
        print(f"step {step} loss {1 / step:.4f}", flush=True)
        time.sleep(0.02)
"""


@pytest.mark.parametrize(
    ("rule", "cause"),
    [
        ({"stop_at": "loss=0.05"}, "The loss has reached 0.05000 at step 20"),
        ({"max_hours": 1 / 3600}, "its time limit"),
    ],
)
def test_a_rule_stops_a_script_as_a_person_does(script_run: MakeScriptRun, rule: dict[str, object], cause: str) -> None:
    run = script_run(FALLING, devices=("cpu:1",), mode="single", **rule)
    run.start()
    state = run.end()
    assert (state.state, state.exit_code) == (STOPPED, 0)
    assert cause in state.stopped_by
    assert [line["rule"] for line in run.events("alert") if line["kind"] == "early_stop"] == list(rule)
    run.assert_nothing_left()


def test_the_command_run_takes_the_rules(
    script_run: MakeScriptRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = script_run(FALLING).folder / "train me.py"
    words = ["run", "--devices", "cpu:0", "--stop-at", "loss<=0.1", "--run-dir", str(tmp_path / "run"), str(script)]
    assert main(words) == 0
    out = capsys.readouterr()
    assert "Alert: Stopping early. The loss has reached" in out.out + out.err
    assert "Stopped early: The loss has reached" in out.out + out.err
