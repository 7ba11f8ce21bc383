"""The environment of the user's program: torchrun's, and nothing of ours."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from core.paths import PACKAGE_FOLDER, SDK_FOLDER
from core.protocol.rank_context import RankContext
from core.recipes.user_script import UserScript
from workers.script.launch import script_environment

RUN_DIR = Path("runs") / "one"
OURS = {
    "PATH": "p", "PYTHONPATH": os.pathsep.join([str(PACKAGE_FOLDER), "theirs"]), "PYTHONUTF8": "1", "RANK": "1",
    "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "4242",
    "RANKDECK_RANK": '{"token": "secret"}', "RANKDECK_RUN_MARK": "this run",
    "CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b",
}  # fmt: skip


def environment(
    rank: int, world_size: int, mode: str, *, restarts: int = 0, max_restarts: int = 0, own_port: int = 0, **script: Any
) -> dict[str, str]:
    started = UserScript(sys.executable, ("train.py",), (), Path(), dict(script.pop("environment", {})), **script)
    context = RankContext(rank, world_size, "cpu", mode, threads=3, run_dir=RUN_DIR, restarts=restarts, token="secret")
    more = {"run_id": "r", "max_restarts": max_restarts, "own_port": own_port}
    return script_environment(started, context, OURS, {"RANKDECK_SDK_PORT": "9"}, **more, linux=True)


def test_it_is_torchruns() -> None:
    env = environment(1, 2, "ddp", restarts=1, max_restarts=3)
    wanted = {
        "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0", "ROLE_RANK": "1",
        "ROLE_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "4242", "TORCHELASTIC_RESTART_COUNT": "1",
        "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RUN_ID": "r", "TORCHELASTIC_USE_AGENT_STORE": "False",
        "OMP_NUM_THREADS": "3", "CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b",
    }  # fmt: skip
    assert {name: env.get(name) for name in wanted} == wanted


def test_nothing_of_ours_reaches_it() -> None:
    env = environment(1, 2, "ddp")
    assert env["PYTHONPATH"] == os.pathsep.join(["theirs", str(SDK_FOLDER)])
    assert "PYTHONUTF8" not in env and "secret" not in str(env)
    assert {name: value for name, value in env.items() if name.startswith("RANKDECK")} == {
        "RANKDECK_RUN_ID": "r",
        "RANKDECK_RUN_DIR": str(RUN_DIR),
        "RANKDECK_RUN_MARK": "this run",  # or what it starts in sessions of their own would not be found
        "RANKDECK_SDK_PORT": "9",
    }


def test_on_one_device_torchruns_variables_can_be_left_out() -> None:
    left_out = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"}
    assert not left_out & set(environment(0, 1, "single", plain=True))
    assert left_out <= set(environment(0, 1, "single"))
    assert left_out <= set(environment(0, 2, "ddp", plain=True))  # several could not find each other without


def test_an_independent_rank_has_a_world_of_its_own() -> None:
    env = environment(1, 2, "independent", own_port=77)
    assert (env["RANK"], env["WORLD_SIZE"], env["MASTER_PORT"]) == ("0", "1", "77")


def test_what_the_person_says_wins() -> None:
    env = environment(0, 2, "ddp", environment={"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "latin-1"})
    assert (env["OMP_NUM_THREADS"], env["PYTHONIOENCODING"]) == ("1", "latin-1")
