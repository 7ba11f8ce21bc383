"""The package `rankdeck` in a process of its own: without a host, with a host's socket, and with data to deal out."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.paths import SDK_FOLDER
from workers.script.sdk_server import ENV_PORT, ENV_TOKEN, Peer, SdkServer

pytestmark = pytest.mark.windows

LIMIT_S = 30.0


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RANK", "WORLD_SIZE"))}
    return {**kept, "PYTHONPATH": str(SDK_FOLDER), **more}


def run_program(text: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", text], env=environment(**env), capture_output=True, text=True, encoding="utf-8",
        timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


class Listener:
    """A wrapper's end of the socket that keeps what it hears."""

    def __init__(self, **welcome: Any) -> None:
        self.heard: list[Mapping[str, Any]] = []
        self.answers: dict[str, Any] = {}
        self.server = SdkServer(lambda: {"welcome": 1, **welcome}, self._on_message)

    def _on_message(self, peer: Peer, message: Mapping[str, Any]) -> None:
        self.heard.append(message)
        if "ask" in message:
            peer.answer(message, **self.answers[message["ask"]](message))

    def run(self, text: str, **env: str) -> str:
        place = {ENV_PORT: str(self.server.port), ENV_TOKEN: self.server.token, **env}
        process = subprocess.Popen(
            [sys.executable, "-c", text], env=environment(**place), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        deadline = time.monotonic() + LIMIT_S
        try:
            while process.poll() is None and time.monotonic() < deadline:
                self.server.poll(0.02)
            for _ in range(5):
                self.server.poll(0.02)
        finally:
            process.kill()
            out, _ = process.communicate()
            self.server.close()
        assert process.returncode == 0, out.decode()
        return out.decode()

    def logs(self) -> list[tuple[int, dict[str, float]]]:
        return [(message["step"], message["log"]) for message in self.heard if "log" in message]


def test_without_a_host_nothing_happens() -> None:
    text = """
import rankdeck, threading
rankdeck.log(step=1, loss=0.5)
rankdeck.log({"loss": 0.5})
assert rankdeck.should_stop() is False
assert rankdeck.config.get("lr") is None and rankdeck.last_checkpoint() is None
assert threading.active_count() == 1
"""
    run_program(text)
    run_program(text.replace("assert threading.active_count() == 1", ""), RANKDECK_SDK_PORT="1")  # nobody listens there


def test_numbers_arrive_as_they_were_logged() -> None:
    listener = Listener()
    listener.run("""
import rankdeck, array
class Scalar:
    def item(self): return 0.25
rankdeck.log(step=1, loss=0.5, note="words", none=None)
rankdeck.log({"train": {"loss": 0.4}, "acc": Scalar()}, step=2)
rankdeck.log({"step": 3, "loss": float("nan")})
rankdeck.log({"a": 1}, commit=False)
rankdeck.log({"b": 2})
""")
    logs = listener.logs()
    assert logs[:2] == [(1, {"loss": 0.5}), (2, {"train/loss": 0.4, "acc": 0.25})]
    assert logs[2][0] == 3 and logs[2][1]["loss"] != logs[2][1]["loss"]
    assert logs[3] == (4, {"a": 1, "b": 2})


def test_a_stop_is_heard() -> None:
    listener = Listener()
    polls: list[bool] = []
    heard = listener._on_message

    def answer_polls(peer: Peer, message: Mapping[str, Any]) -> None:
        heard(peer, message)
        if "polls" in message:
            polls.append(True)
            listener.server.broadcast({"stop": True})

    listener.server._handle = answer_polls
    out = listener.run("""
import rankdeck, time
while not rankdeck.should_stop(): time.sleep(0.01)
print("stopped")
""")
    assert "stopped" in out and polls == [True]


def test_logging_never_waits_for_a_host_that_does_not_read() -> None:
    listener = Listener()
    text = """
import rankdeck, os
for i in range(60_000): rankdeck.log(step=i, loss=1.0, text="x" * 100)
assert rankdeck.link.connected().dropped > 0 or not rankdeck.link.connected()._pending
print("done"); import sys; sys.stdout.flush(); os._exit(0)
"""
    place = {ENV_PORT: str(listener.server.port), ENV_TOKEN: listener.server.token}
    try:
        assert "done" in run_program(text, **place)
    finally:
        listener.server.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="data loaders fork on POSIX only")
def test_a_forked_worker_has_a_line_of_its_own() -> None:
    listener = Listener()
    listener.run("""
import os, rankdeck, warnings
warnings.simplefilter("ignore")
rankdeck.log(step=1, loss=0.5); rankdeck.finish()
pid = os.fork()
rankdeck.log(step=2 if pid else 3, loss=0.5); rankdeck.finish()
if pid: os.waitpid(pid, 0)
else: os._exit(0)
""")
    assert sorted(step for step, _ in listener.logs()) == [1, 2, 3]


def test_a_stranger_is_not_listened_to() -> None:
    listener = Listener()
    listener.run("import rankdeck; rankdeck.log(step=1, loss=1); rankdeck.finish()", **{ENV_TOKEN: "wrong"})
    assert listener.heard == []


@pytest.mark.parametrize(("samples", "world"), [(1003, 1), (1003, 2), (97, 3), (5, 2)])
def test_without_a_host_ranks_share_the_data_out(samples: int, world: int) -> None:
    text = f"""
import json, rankdeck
print(json.dumps([chunk.indices for chunk in rankdeck.chunks({samples}, chunk_size=40)]))
print(json.dumps([[batch for batch in chunk.batches(8)] for chunk in rankdeck.chunks({samples}, chunk_size=40)]))
"""
    found = [run_program(text, RANK=str(rank), WORLD_SIZE=str(world)).splitlines() for rank in range(world)]
    whole = sorted(index for lines in found for chunk in json.loads(lines[0]) for index in chunk)
    assert whole == list(range(samples))
    batches = [[batch for chunk in json.loads(lines[1]) for batch in chunk] for lines in found]
    assert sorted(index for rank in batches for batch in rank for index in batch) == list(range(samples))
    assert len({len(rank) for rank in batches}) == 1  # as many steps on each rank, or they would wait for each other


def test_it_is_python_3_8() -> None:
    files = sorted((SDK_FOLDER / "rankdeck").glob("*.py"))
    assert len(files) > 5
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
        names = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
        names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
        ours = {"workers"} if path.name == "recipe.py" else set()  # for type checkers; else imported on first use
        assert {name.split(".")[0] for name in names} <= ours | set(sys.stdlib_module_names), path


def test_a_recipe_that_is_run_like_a_script_says_how_it_is_started(tmp_path: Path) -> None:
    train = tmp_path / "my model" / "train.py"
    train.parent.mkdir()
    train.write_text("from rankdeck.recipe import Run\n", encoding="utf-8")
    (train.parent / "recipe.toml").touch()
    told = subprocess.run(
        [sys.executable, "-S", str(train)],
        env={**os.environ, "PYTHONPATH": str(SDK_FOLDER)},
        capture_output=True,
        check=False,
    )
    last = told.stderr.decode("utf-8", "replace").splitlines()[-1]
    assert told.returncode == 1 and last.startswith("ImportError: Cannot import 'Run' from rankdeck.recipe")
    assert f'rankdeck train --recipe "{train.parent.resolve()}"' in last
