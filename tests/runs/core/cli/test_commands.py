"""What the commands print about runs, recipes and this machine; and that none of them needs Qt or torch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import core
from core.cli import entry, main
from core.cli.follow import Follower
from core.cli.interrupts import Interrupts
from core.cli.terminal import Terminal
from core.config.run_config import RunConfig
from core.errors import RankdeckError
from core.metrics import columns
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, make_run

pytestmark = pytest.mark.windows


@pytest.fixture
def store(tmp_path: Path, runs_dir: Path) -> RunStore:
    (tmp_path / "text.txt").write_bytes(TEXT)
    store = make_run(tmp_path, runs_dir=runs_dir)
    launch = {"mode": "ddp", "world_size": 2, "total_steps": 100, "devices": ["cpu:0", "cpu:1"]}
    lines: list[dict[str, Any]] = [
        {"event": "launch", "rank": -1, **launch},
        {"event": "step", "rank": 0, "step": 20, "loss": 2.0, "tokens_per_s": 500.0},
        {"event": "eval", "rank": 0, "step": 20, "val_loss": 2.5},
    ]
    text = "".join(json.dumps({"ts": 1.0, "attempt": 1, **line}) + "\n" for line in lines)
    store.metrics.write_text(text, encoding="utf-8", newline="\n")
    return store


def test_runs_lists_them_and_says_when_there_is_none(
    tmp_path: Path, store: RunStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs"]) == 0
    assert store.dir.name in capsys.readouterr().out
    assert main(["runs", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["run_id"], listed["state"], listed["path"]) == (store.dir.name, "stopped", str(store.dir))
    assert main(["runs", "--runs-dir", str(tmp_path / "none")]) == 0
    assert "rankdeck train" in capsys.readouterr().out


def test_show_says_what_the_run_is_and_how_to_do_it_again(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", store.dir.name]) == 0
    out = capsys.readouterr().out
    assert "20 of 100" in out and "rankdeck train" in out and str(store.dir) in out
    assert main(["show", store.dir.name, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["command"].startswith("rankdeck train --dataset-file")
    assert RunConfig(**{**value["config"], "devices": tuple(value["config"]["devices"])}) == store.config()


def test_attach_to_a_run_that_has_ended_says_how(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", store.dir.name]) == 0
    out = capsys.readouterr().out
    assert "Stopped at step 20" in out and "validation loss 2.5" in out
    assert f"rankdeck resume {store.dir.name}" in out


def test_figures_are_those_that_the_recipe_names(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs"]) == 0
    assert " loss 2.000 " in capsys.readouterr().out
    ppo = {"loss": -0.02, "episode_return": 21.5}
    lines: list[dict[str, Any]] = [
        {"event": "step", "rank": 0, "step": 20, **ppo},
        {"event": "eval", "rank": 0, "step": 20, "val_loss": -19.0, "val_return": 19.0, "val_length": 30.0},
    ]
    text = "".join(json.dumps({"ts": 1.0, "attempt": 1, **line}) + "\n" for line in lines)
    store.metrics.write_text(text, encoding="utf-8", newline="\n")
    columns.rebuild(store.dir)
    store.write_state(store.state().replace(recipe="clstm_ppo", loss=-0.02, val_loss=-19.0))
    assert main(["attach", store.dir.name]) == 0
    out = capsys.readouterr().out
    assert "return 21.50, evaluation return 19.00\n" in out and "loss" not in out
    assert main(["show", store.dir.name]) == 0
    out = capsys.readouterr().out
    assert "21.50, best evaluation 19.00" in out and "Return" in out and "Loss" not in out
    assert main(["runs"]) == 0
    assert " return 21.50 " in capsys.readouterr().out
    store.metrics.write_text("", encoding="utf-8")
    columns.rebuild(store.dir)
    assert main(["runs"]) == 0
    assert "-0.02" not in capsys.readouterr().out, "nothing is better than another figure under its name"


def test_a_script_without_metrics_never_stands_at_step_0(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write_state(store.state().replace(state="finished", recipe="script", step=0, loss=None, val_loss=None))
    store.metrics.write_text("", encoding="utf-8")
    assert main(["attach", store.dir.name]) == 0
    out = capsys.readouterr().out
    assert "Finished after" in out and "step 0" not in out and "loss –" not in out
    assert "printed no step or loss that Rankdeck recognises" in out and "--map NAME=CHART" in out


def test_attach_as_json_begins_with_the_first_line(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", store.dir.name, "--json"]) == 0
    values = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [value["event"] for value in values] == ["launch", "step", "eval", "state"]
    assert values[-1]["state"] == "stopped"


def test_a_failed_run_says_why_and_gives_its_exit_code(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    error = {"title": "Out of memory", "cause": "Rank 1 ran out of memory.", "next_step": "Use a smaller batch."}
    store.write_state(store.state().replace(state="failed", error=error, exit_code=1))
    assert main(["attach", store.dir.name]) == 1
    assert capsys.readouterr().err.splitlines() == list(error.values())
    assert main(["runs"]) == 0
    assert "Rank 1 ran out of memory." in capsys.readouterr().out


def test_a_run_whose_folder_is_gone_while_it_is_watched_is_said(
    store: RunStore,
) -> None:
    follower = Follower(store, Terminal(), as_json=False)
    shutil.rmtree(store.dir)
    with pytest.raises(RankdeckError, match="removed or moved") as caught:
        follower.until_end(Interrupts(), lambda _number: True)
    assert caught.value.exit_code == 1 and "rankdeck resume" in caught.value.next_step


def test_a_dry_run_of_resume_only_says_what_would_happen(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", store.dir.name, "--dry-run"]) == 0
    assert "from step 20 (checkpoint 2)." in capsys.readouterr().out
    assert store.state().state == "stopped"


def test_a_recipes_own_settings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "hf_causal_lm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Hugging Face causal LM: Language models of the transformers library")
    assert "Packages: transformers, tokenizers" in lines
    rows = {
        line.split()[0]: line
        for line in lines[lines.index("The recipe's own settings, set with --set SETTING=VALUE:") + 2 :]
    }
    assert "one of full, lora" in rows["training"] and "from 1 to 1024" in rows["n_layer"]
    assert "true or false" in rows["allow_download"]
    assert main(["recipes", "hf_causal_lm", "--json"]) == 0
    named = [field["name"] for field in json.loads(capsys.readouterr().out)["fields"]]
    assert list(rows) == named
    assert main(["recipes", "hf_causal"]) == 2 and "hf_causal_lm" in capsys.readouterr().err
    assert main(["recipes", "minigpt", "mine"]) == 2 and "recipes new NAME" in capsys.readouterr().err


def test_recipes_and_devices_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes"]) == 0
    assert "minigpt" in capsys.readouterr().out
    assert main(["recipes", "--json"]) == 0
    assert "minigpt" in [recipe["name"] for recipe in json.loads(capsys.readouterr().out)]
    assert main(["devices"]) == 0
    assert "UUID" in capsys.readouterr().out
    assert main(["devices", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["devices"] and {"uuid", "kind", "name"} <= listed["devices"][0].keys()


def test_the_doctor_speaks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) in (0, 3)
    assert "Python" in capsys.readouterr().out
    main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert all({"id", "name", "level", "text", "meaning", "next_step", "fix"} <= set(item) for item in found)
    assert all(item["meaning"] and item["text"] for item in found)


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert core.__version__ in capsys.readouterr().out
    for words in ([], ["--help"], ["train", "--help"]):
        assert main(words) == 0
        assert "rankdeck" in capsys.readouterr().out


def test_a_defect_is_three_lines_with_its_traceback_in_a_file(
    runs_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def break_down(_: object) -> None:
        raise ZeroDivisionError("an accident")

    monkeypatch.setattr(entry, "parse", break_down)
    assert main(["runs"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["Rankdeck failed unexpectedly", "ZeroDivisionError: an accident."]
    assert len(lines) == 3
    log = runs_dir / entry.DEFECT_LOG
    assert str(log) in lines[2]
    assert "Traceback" in log.read_text(encoding="utf-8")


def test_ctrl_c_outside_a_run_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "parse", interrupt)
    assert main(["runs"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", [["runs"], ["devices"], ["recipes"], ["doctor"], ["train", "--help"]])
def test_no_command_loads_qt_torch_or_numpy(words: list[str]) -> None:
    code = (
        "import sys\nfrom app.__main__ import main\n"
        f"main({[*words]!r})\n"
        "loaded = [n for n in ('PySide6', 'torch', 'numpy', 'pyqtgraph', 'workers') if n in sys.modules]\n"
        "sys.exit(str(loaded) if loaded else 0)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
