"""The grammar: every command of the contract, and mistakes as three sentences."""

from __future__ import annotations

import pytest

from core.cli.parser import parse
from core.cli.slurm import is_submitted
from core.errors import UsageError

pytestmark = pytest.mark.windows

SEED = (
    "--ddp --cuda-ids 0,1 --world-size 2 --model gpt2 --dataset-file a.txt --steps 10 --batch-size 4 "
    "--halt-max-steps 1 --log-file artifacts/brains/actv1/metrics.jsonl"
)


def test_every_command_of_the_contract_is_understood() -> None:
    for words in (
        "train --steps 5 --json",
        "train --detach --set n_layer=2 --set n_head=2 --machine gpubox",
        "resume some/path --steps 10 --detach --machine gpubox",
        "stop run-1 --now",
        "attach run-1 --json",
        "show run-1 --json",
        "machines add gpubox me@gpubox.lan --port 2222 --json",
        *(f"{command} --json" for command in ("runs", "devices", "recipes", "doctor", "machines")),
    ):
        assert parse(words.split()).command == words.split()[0]


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("--nodes 2", "without --slurm"),
        ("--gpus-per-node 1", "without --slurm"),
        ("--sbatch=--mem=1", "without --slurm"),
        ("--slurm --machine a", "are both given"),
        ("--slurm --run-dir a", "are both given"),
    ],
)
def test_flags_that_contradict_slurm(words: str, cause: str) -> None:
    with pytest.raises(UsageError, match=cause):
        is_submitted(parse(["train", *words.split()]))


@pytest.mark.parametrize(
    ("words", "cause", "step"),
    [
        (["trian"], "no command 'trian'", "Did you mean train?"),
        (["xyzzy"], "no command 'xyzzy'", "attach"),
        (["train", "--stpes", "3"], "--stpes", "Did you mean --steps?"),
        (["train", "--step", "3"], "--step", "--steps"),
        (["train", "--qqqq"], "--qqqq", "rankdeck train --help"),
        (["train", "--steps"], "expected one argument", "rankdeck train --help"),
        (["export", "r", "--to", "foo"], "--to cannot be 'foo'.", "It takes one of: csv, "),
        (["export", "r", "--to", "safetensor"], "--to cannot be 'safetensor'.", "Did you mean safetensors?"),
        (["machines", "ad"], "ACTION cannot be 'ad'", "Did you mean add?"),
        (["resume"], "PATH", "rankdeck resume --help"),
        (["stop", "a", "b"], "b", "rankdeck stop --help"),
    ],
)
def test_a_mistake_is_said_in_words(words: list[str], cause: str, step: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert cause in caught.value.cause
    assert step in caught.value.next_step
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["resume", "-h"]])
def test_help_is_printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(words)
    assert caught.value.code == 0
    assert "rankdeck" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["train-actv1", "hrm-hf train-actv1"])
def test_train_actv1_is_train_with_its_recipe(command: str) -> None:
    found = parse(f"{command} {SEED}".split())
    assert (found.command, found.recipe, found.model, found.halt_max_steps) == ("train", "actv1", "gpt2", "1")


def test_underscores_are_as_good_as_dashes() -> None:
    found = parse(["train", "--batch_size", "8", "--dataset_file=a_b.txt", "--no-torch_compile", "--set", "n_layer=2"])
    assert (found.batch_size, found.dataset_file, found.torch_compile, found.set) == (
        "8",
        "a_b.txt",
        False,
        ["n_layer=2"],
    )
    assert parse(["runs", "--runs_dir", "x_y"]).runs_dir == "x_y"


def test_a_flag_that_is_wrong_either_way_is_named_as_it_was_written() -> None:
    with pytest.raises(UsageError, match="--bach_size"):
        parse(["train", "--bach_size", "8"])


def test_a_script_keeps_its_own_words() -> None:
    words = ["run", "--log-file", "my_log", "--no-torchrun", "--devices", "cpux2", "train.py", "--batch_size", "8"]
    found = parse(words)
    assert (found.log_file, found.no_torchrun) == ("my_log", True)
    assert found.script_argv == ["train.py", "--batch_size", "8"]
    module = parse(["run", "-m", "a.b", "--", "--log_file", "x"])
    assert "--log_file" in module.script_argv
