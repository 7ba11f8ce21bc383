"""Launch files: what each kind holds; tests/runs/launchers runs those that can run here."""

from __future__ import annotations

import dataclasses
import re
import shlex

import pytest

from core.config.distributed import ENV_DISTRIBUTED, DistributedConfig
from core.config.launch_kinds import LAUNCH_KINDS, SUFFIXES
from core.launch.launch_files import LaunchCommand, launch_file

pytestmark = pytest.mark.windows
TRAIN = ("--dataset-file", "/data/it's text $HOME", "--steps", "20")
CPU = LaunchCommand(
    name="a run; rm -rf /",
    python="/opt/my python/bin/python",
    python_path="/opt/rankdeck/workers/sdk",
    train=TRAIN,
    devices=("cpu:0", "cpu:1"),
    variables={},
    place=DistributedConfig(2, devices_per_node=2),
)
GPU = dataclasses.replace(CPU, devices=("GPU-a", "GPU-b"), variables={"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"})


def last_words(text: str) -> list[str]:
    return shlex.split(text.splitlines()[-1])


@pytest.mark.parametrize(("kind", "module"), [("torchrun", "run"), ("launch", "launch")])
def test_scripts_for_torch(kind: str, module: str) -> None:
    words = last_words(launch_file(kind, CPU))
    assert words[:4] == ["exec", "/opt/my python/bin/python", "-m", f"torch.distributed.{module}"]
    assert "--nproc-per-node=2" in words and words[-1] == "$@"
    assert words[words.index("train") + 1 : -1] == [*TRAIN, "--devices", "cpu:0,cpu:1"]
    gpu = launch_file(kind, GPU)
    assert "export CUDA_VISIBLE_DEVICES=GPU-a,GPU-b\n" in gpu and "--devices" not in gpu


def test_a_batch_script_asks_slurm_for_gpus() -> None:
    text = launch_file("sbatch", GPU)
    assert "#SBATCH --gres=gpu:2\n" in text and "#SBATCH --ntasks-per-node=1\n" in text
    assert "CUDA_VISIBLE_DEVICES" not in text, "Slurm chooses which"
    on_cpu = launch_file("sbatch", CPU)
    assert "--gres" not in on_cpu and "#SBATCH --cpus-per-task=2\n" in on_cpu


def test_an_environment_is_read_back() -> None:
    text = launch_file("env", CPU)
    variables = dict(
        word.split("=", 1) for line in text.splitlines() if line.startswith("export ") for word in shlex.split(line)[1:]
    )
    assert "RANK" not in variables and "LOCAL_RANK" not in variables
    place = DistributedConfig.from_env({**variables, "RANK": "1", "LOCAL_RANK": "1"})
    assert (place.rank, place.world_size, place.launch_method) == (1, 2, "env")
    assert ENV_DISTRIBUTED in variables


def test_powershell_starts_the_ranks_with_rankdeck() -> None:
    text = launch_file("powershell", GPU)
    assert "$env:CUDA_VISIBLE_DEVICES = 'GPU-a,GPU-b'\n" in text
    assert "& '/opt/my python/bin/python' '-m' 'rankdeck' 'train'" in text
    assert "'\"/data/it''s text $HOME\"'" in text and "'--devices' 'GPU-a,GPU-b' @args\n" in text


def test_powershell_5_1_reads_letters_and_arguments_as_they_are() -> None:
    hard = (
        "--run-name",
        "Läufe",
        "--note",
        "it’s ‘new’; exit",
        "--set",
        'a="b c"',
        "--tags",
        "",
        "--out",
        "D:\\my runs\\",
    )
    text = launch_file("powershell", dataclasses.replace(CPU, train=hard))
    assert text.startswith("\ufeff#"), "without the mark it is read in the system's code page"
    (line,) = (line for line in text.splitlines() if line.startswith("& "))
    # A literal ends at the first quotation mark that does not stand twice; typographic ones count too.
    literals = re.finditer("'((?:[^'‘-‛]|(['‘-‛])\\2)*)'(?= )", line)
    program, *words = [re.sub("(['‘-‛])\\1", r"\1", literal[1]) for literal in literals]
    assert program == CPU.python
    # PowerShell joins them by blanks, and Windows' C library takes them apart, as shlex does but for the backslash.
    assert words[3:] == [
        "--run-name", "Läufe", "--note", '"it’s ‘new’; exit"', "--set", '"a=\\"b c\\""', "--tags", '""', "--out",
        '"D:\\my runs\\\\"', "--devices", "cpu:0,cpu:1",
    ]  # fmt: skip
    assert text.index("$PSNativeCommandArgumentPassing = 'Legacy'") < text.index(line), "later ones would escape again"


def test_each_kind_has_a_suffix_and_says_what_it_is() -> None:
    assert LAUNCH_KINDS.keys() == SUFFIXES.keys()
    for kind in LAUNCH_KINDS:
        text = launch_file(kind, CPU)
        assert kind == "distributed" or "a run; rm -rf /" in text
        assert text.endswith("\n") and "\r" not in text
        assert not any(line.startswith("rm ") for line in text.splitlines())


@pytest.mark.parametrize("kind", [kind for kind in LAUNCH_KINDS if kind != "distributed"])
def test_a_received_runs_settings_stand_in_the_file_as_comments(kind: str) -> None:
    warning = "Environment variables for every process: LD_PRELOAD=/evil.so\nrm -rf /\u2028, A=\rB."
    text = launch_file(kind, dataclasses.replace(CPU, warnings=(warning,)))
    (line,) = (line for line in text.splitlines() if "LD_PRELOAD" in line)
    assert line == "# Environment variables for every process: LD_PRELOAD=/evil.so rm -rf / , A= B."
    assert not any(line.startswith("rm ") for line in text.splitlines())


def test_a_folders_name_ends_no_line_of_a_batch_file() -> None:
    text = launch_file("sbatch", dataclasses.replace(CPU, name="a\nrm b"))
    assert "#SBATCH '--job-name=a rm b'\n" in text and "# Trains as the Rankdeck run a rm b:" in text
