"""A user's own scripts, unmodified, through a real host: torchrun's place, curves, causes, stops, restarts, data."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from pathlib import Path

import pytest

from core.errors import UsageError
from core.resume.planner import plan_resume
from tests.helpers.host_fixture import FAILED, FINISHED, STOPPED
from tests.helpers.script_runs import MakeScriptRun, ScriptRun
from tests.helpers.wine import not_under_wine

SCRIPTS = Path(__file__).parent / "scripts"

LOOP = """
    import os, sys, time
    step = 0
    while True:
        step += 1
        print(f"step {step} loss {1 / step:.4f}", flush=True)
        time.sleep(0.02)
"""


def script(name: str, *packages: str) -> Path:
    """A script of `tests/runs/end2end/scripts`; skips the test where its packages are missing."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    return SCRIPTS / name


# --- running ---------------------------------------------------------------------------------------------


@pytest.mark.spawned
@pytest.mark.slow
def test_plain_ddp_over_two_ranks(script_run: MakeScriptRun) -> None:
    run = script_run(script("plain_ddp.py"), "30").start()
    state = run.end()
    assert (state.state, state.exit_code, state.step, state.error) == (FINISHED, 0, 30, None)
    assert run.steps(0) == list(range(1, 31)) and run.steps(1) == []
    first = run.events("step")[0]
    assert first["lr"] == 0.1 and first["loss"] > 0 and first["epoch"] == 0
    assert "rank 1 of 2: the ranks add up to 1" in run.printed(1)


@pytest.mark.windows
def test_a_project_with_packages_of_our_names_runs(script_run: MakeScriptRun) -> None:
    run = script_run(script("own_packages/train.py"), "--name 'a b' C:\\x", devices=("cpu:1",)).start()
    assert run.end().state == FINISHED
    assert (
        "[\"the user's core\", \"the user's app\", \"the user's workers\"] ['--name', 'a b', 'C:\\\\x']"
        in run.printed()
    )
    assert [(line["step"], line["loss"]) for line in run.events("step")] == [(1, 0.5)]


@pytest.mark.spawned
@pytest.mark.windows
def test_a_module_in_its_own_folder_with_its_own_variables(script_run: MakeScriptRun) -> None:
    text = "import os, sys\nprint('here', os.getcwd(), os.environ['MINE'], __package__, sys.argv[1:])\n"
    run = script_run("", devices=("cpu:1",))
    package = run.folder / "pkg"
    package.mkdir()
    (package / "train.py").write_text(text, encoding="utf-8")
    options = {"script": "", "module": "pkg.train", "working_directory": str(run.folder)}
    options = {**run._config.options, **options, "arguments": "--a 1"}
    run._config = run._config.replace(options=options, env={"MINE": "x y"})
    assert run.start().end().state == FINISHED
    assert f"here {run.folder} x y pkg ['--a', '1']" in run.printed()


@pytest.mark.windows
def test_a_script_that_prints_nothing_finishes(script_run: MakeScriptRun) -> None:
    run = script_run("pass\n", devices=("cpu:1",)).start()
    assert (run.end().state, run.lines()[-1]["event"]) == (FINISHED, "finished")
    with pytest.raises(UsageError):
        plan_resume(str(run.run_dir), run.folder)


@pytest.mark.windows
def test_output_that_cannot_be_charted_is_told_with_its_names(script_run: MakeScriptRun) -> None:
    text = "for i in range(60): print(f'round {i} criterion: {2.5 / (i + 1):.3f}')\n"
    run = script_run(text, devices=("cpu:1",)).start()
    state = run.end()
    assert (state.state, state.step, state.loss) == (FINISHED, 0, None)
    (alert,) = run.events("alert")
    assert alert["title"] == "The script's output could not be charted"
    assert "criterion (0.042, 0.042)" in alert["cause"] or "criterion (0.0" in alert["cause"]
    assert list(alert["names"]) == ["criterion", "round"] and alert["numbers"]["round"] == [58, 59]
    mapped = script_run(text, options={"charts": "criterion=loss, round=step"}, devices=("cpu:1",)).start()
    assert mapped.end().step == 59 and not mapped.events("alert")


# --- failing ---------------------------------------------------------------------------------------------


def test_the_rank_that_failed_first_is_the_cause_and_ends_the_others(script_run: MakeScriptRun) -> None:
    text = """
        if step == 5 and os.environ["RANK"] == "1":
            raise RuntimeError("the 5th batch is rotten")
        if step == 15 and os.environ["RANK"] == "0":
            raise RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:41235")
    """
    run = script_run(LOOP.rstrip() + text).start()
    state = run.end()
    assert (state.state, state.exit_code) == (FAILED, 1)
    assert state.error is not None and state.error["title"] == "CPU 1: The script failed"
    assert ".py, line" in state.error["cause"]
    assert "RuntimeError: the 5th batch is rotten" in state.error["cause"]
    assert "Traceback (most recent call last)" in run.printed(1)
    run.assert_nothing_left()


@pytest.mark.spawned
def test_a_killed_script_is_named_with_its_signal(script_run: MakeScriptRun) -> None:
    run = script_run(LOOP).start()
    run.wait_for_step(3).wait_for_step(3, rank=1)
    next(p for p in run.scripts() if p.environ()["RANK"] == "1").kill()
    state = run.end()
    how = "exit code 15" if sys.platform == "win32" else "SIGKILL"  # psutil's code for a process that it ends
    assert state.error is not None and how in state.error["cause"] and state.error["title"].startswith("CPU 1: ")
    run.assert_nothing_left()


@pytest.mark.windows
def test_an_interpreter_that_is_gone_is_the_persons_fault(script_run: MakeScriptRun, tmp_path: Path) -> None:
    run = script_run("pass\n", options={"python": str(tmp_path / "gone" / "python")}).start()
    state = run.end()
    assert (state.state, state.exit_code) == (FAILED, 2)
    assert state.error is not None and "no interpreter" in state.error["cause"]


@pytest.mark.windows
def test_a_failed_group_is_started_anew_so_often(script_run: MakeScriptRun) -> None:
    text = """
        import os, sys
        count = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        print(f"restart {count} of {os.environ['TORCHELASTIC_MAX_RESTARTS']}", flush=True)
        for step in range(count * 5, count * 5 + 5):
            print(f"step {step} loss 1.5", flush=True)
        if count < int(sys.argv[1]) and os.environ["RANK"] == "1":
            raise OSError(f"trouble {count}")
        if count < int(sys.argv[1]):
            input_never_comes = __import__("time").sleep(60)
    """
    run = script_run(text, "2", max_restarts=2).start()
    state = run.end()
    assert (state.state, state.attempt) == (FINISHED, 3)
    assert [(line["number"], line["of"]) for line in run.events("restart")] == [(1, 2), (2, 2)]
    assert "trouble 1" in run.events("restart")[1]["cause"] and "restart 2 of 2" in run.printed(1)
    assert [line["resumed_from"] for line in run.events("resumed") if "0" in line["resumed_from"]] == [
        {"0": 4},
        {"0": 9},
    ]
    other = script_run(text, "2", max_restarts=1).start()
    failed = other.end()
    assert (failed.state, failed.attempt) == (FAILED, 2) and "trouble 1" in (failed.error or {})["cause"]


# --- stopping, and who dies with whom --------------------------------------------------------------------


@pytest.mark.windows
def test_a_script_that_asks_stops_as_it_likes(script_run: MakeScriptRun) -> None:
    text = """
        import rankdeck, time
        step = 0
        while not rankdeck.should_stop():
            step += 1
            rankdeck.log(step=step, loss=1 / step)
            time.sleep(0.01)
        print("saved all at", step, flush=True)
    """
    run = script_run(text).start()
    run.wait_for_step(5).wait_for_step(5, rank=1)
    state = run.stop().end()
    assert (state.state, state.exit_code, state.error) == (STOPPED, 0, None)
    assert "saved all at" in run.printed(0) and "saved all at" in run.printed(1)
    assert "KeyboardInterrupt" not in run.log()


@pytest.mark.windows
def test_a_script_that_does_not_ask_is_interrupted(script_run: MakeScriptRun) -> None:
    run = script_run(LOOP).start()
    run.wait_for_step(3).wait_for_step(3, rank=1)
    state = run.stop().end()
    assert (state.state, state.exit_code, state.error) == (STOPPED, 0, None)
    assert "KeyboardInterrupt" in run.printed(0) and not run.events("alert")


@pytest.mark.spawned
@pytest.mark.windows
def test_a_script_that_does_not_stop_is_ended_with_what_it_started(script_run: MakeScriptRun) -> None:
    text = """
        import signal, subprocess, sys, time
        for name in ("SIGINT", "SIGTERM", "SIGBREAK"):
            if hasattr(signal, name): signal.signal(getattr(signal, name), signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print("step 1 loss 2", child.pid, flush=True)
        while True: time.sleep(1)
    """
    run = script_run(text, options={"stop_deadline_s": 0.5}).start()
    run.wait_for_print("step 1").wait_for_print("step 1", rank=1)
    state = run.stop().end()
    assert (state.state, state.exit_code) == (STOPPED, 0)
    assert {line["rank"] for line in run.events("alert")} == {0, 1}
    run.assert_nothing_left()


@pytest.mark.spawned
@pytest.mark.windows
@pytest.mark.parametrize("victim", ["host", "wrapper"])
def test_nothing_outlives_a_killed_host_or_wrapper(script_run: MakeScriptRun, victim: str) -> None:
    helper = "__import__('subprocess').Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    text = LOOP.replace("step = 0", f"{helper}\n    step = 0")
    run = script_run(text).start()
    run.wait_for_step(3).wait_for_step(3, rank=1)
    assert len(run.scripts()) >= 4
    if victim == "host":
        run.kill_host()
    else:
        mine = [p for p in run.ranks() if p.environ()["RANK"] == "1" and "RANKDECK_SDK_PORT" not in p.environ()]
        (wrapper,) = [p for p in mine if p.name().startswith("python")]  # beside it Windows may run a console's host
        wrapper.kill()
        assert run.end().state == FAILED
    run.assert_nothing_left()


# --- data, exactly once ----------------------------------------------------------------------------------

ONCE = """
    import json, os, sys, time, rankdeck
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    mine = f"seen {os.environ['RANKDECK_RUN_ID'] and rankdeck.rank()} {os.environ.get('SLOT', rank)}.json"
    start = rankdeck.last_checkpoint()
    seen = json.load(open(start)) if start else []
    step = len(seen)
    for chunk in rankdeck.chunks(400, epochs=2, chunk_size=20):
        for batch in chunk.batches(4):
            seen += [[chunk.epoch, index] for index in batch]
            step += 1
            rankdeck.log(step=step, loss=1 / step)
            time.sleep(0.004)
            if step % 7 == 0:
                with rankdeck.checkpoint(mine, step=step) as path:
                    json.dump(seen, open(path, "w"))
            if rankdeck.should_stop():
                break
        else:
            continue
        break
    with rankdeck.checkpoint(mine, step=step) as path:
        json.dump(seen, open(path, "w"))
    print("the end", flush=True)
"""


def seen_by_all(run: ScriptRun) -> list[tuple[int, int]]:
    """Every sample in the ranks' checkpoints."""
    return sorted(tuple(item) for path in run.folder.glob("seen *.json") for item in json.loads(path.read_text()))


EVERY_SAMPLE = [(epoch, index) for epoch in range(2) for index in range(400)]


@pytest.mark.second_tier
@pytest.mark.spawned
@pytest.mark.windows
def test_data_is_dealt_out_once_through_stops_and_kills(script_run: MakeScriptRun) -> None:
    run = script_run(ONCE, dataset_chunk_size=4_000).start()
    run.wait_for_event("commit", 2)
    assert run.stop().end().state == STOPPED
    run.resume()
    run.wait_for_event("commit", 5)
    run.kill_host().assert_nothing_left()
    run.resume()
    state = run.end()
    assert (state.state, state.attempt, state.error) == (FINISHED, 3, None), run.log()
    assert seen_by_all(run) == EVERY_SAMPLE
    assert not list(run.folder.glob("*.partial-*"))


@pytest.mark.slow
def test_data_is_dealt_out_once_through_restarts(script_run: MakeScriptRun) -> None:
    chance = random.Random(5)
    text = ONCE.replace(
        "if step % 7 == 0:",
        "if int(os.environ['TORCHELASTIC_RESTART_COUNT']) < 3 and rank == 1 and step % 60 == "
        f"{chance.randrange(20, 60)}: os._exit(3)\n"
        "            if step % 7 == 0:",
    )
    run = script_run(text, max_restarts=3).start()
    state = run.end()
    assert (state.state, state.attempt) == (FINISHED, 4), run.log()
    assert seen_by_all(run) == EVERY_SAMPLE


@pytest.mark.slow
def test_independent_ranks_have_chunks_and_checkpoints_of_their_own(script_run: MakeScriptRun) -> None:
    text = ONCE.replace("mine = f", "mine = f'seen {os.getcwd() and sys.argv[1:]} ' and f").replace(
        "os.environ.get('SLOT', rank)", "os.path.basename(os.environ['RANKDECK_SDK_PORT'])"
    )
    run = script_run(text, mode="independent").start()
    state = run.end()
    assert (state.state, state.error) == (FINISHED, None), run.log()
    assert seen_by_all(run) == EVERY_SAMPLE


# --- scripts of several authors --------------------------------------------------------------------------


@pytest.mark.second_tier
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "packages", "steps"),
    [
        pytest.param(
            "hf_trainer.py",
            ("transformers", "accelerate"),
            [2, 4, 6, 8, 10, 12],
            marks=not_under_wine("takes minutes to import transformers in two processes"),
        ),
        ("accelerate_loop.py", ("accelerate", "tqdm"), None),
        ("fabric_loop.py", ("lightning_fabric",), list(range(12))),
        ("lightning_trainer.py", ("lightning",), None),
        ("deepspeed_loop.py", ("deepspeed",), list(range(1, 11))),
    ],
)
def test_scripts_of_several_authors_are_charted(
    script_run: MakeScriptRun, name: str, packages: tuple[str, ...], steps: list[int] | None
) -> None:
    run = script_run(script(name, *packages), "out").start()
    state = run.end()
    assert (state.state, state.error) == (FINISHED, None), run.log()
    losses = [line["step"] for line in run.events("step") if "loss" in line and line["rank"] == 0]
    if steps is not None:
        assert losses == steps
    else:  # a bar is drawn so often as time allows, and once more at its end
        assert losses == sorted(losses) and losses[-1] == 16 and len(set(losses)) >= 3


@pytest.mark.windows
def test_a_loss_that_is_not_finite_raises_one_alert_a_stretch(script_run: MakeScriptRun) -> None:
    text = """
    for step in range(1, 13):
        bad = step in (4, 5, 6, 9)
        print(f"step {step} loss {'nan' if bad else 1 / step}", flush=True)
    """
    run = script_run(text, devices=("cpu:1",)).start()
    assert run.end().state == FINISHED
    alerts = [line for line in run.events("alert") if line["kind"] == "nonfinite_loss"]
    assert [alert["step"] for alert in alerts] == [4, 9]
    assert alerts[0]["cause"] == "CPU 0 reports the loss as NaN or infinite at step 4."
    assert alerts[0]["title"] and alerts[0]["next_step"]
