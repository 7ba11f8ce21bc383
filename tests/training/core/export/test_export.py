"""`rankdeck export`: every kind, from runs in every state, and everything that can be asked wrongly."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from core.checkpoints.store import CheckpointStore
from core.cli import main
from core.errors import RankdeckError, StateFileError, UsageError
from core.export import KINDS
from core.export import export as module
from core.export.export import default_place, export_run
from core.files.atomic import write_atomic
from core.protocol.messages import CommitStaged, Position, StagedFile
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, make_run, tree, write_values

pytestmark = pytest.mark.windows


def tensor_file(path: Path, tensors: dict[str, list[float]], pieces: dict[str, Any] | None = None) -> StagedFile:
    """A safetensors file of float32 tensors with one dimension, or of pieces of them."""
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    if pieces is not None:
        head["__metadata__"]["rankdeck"] = json.dumps({"pieces": pieces})
    data = b""
    for name, values in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        head[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return StagedFile(path.name, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())


def tensors_of(path: Path) -> dict[str, list[float]]:
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    head = json.loads(raw[8 : 8 + length])
    head.pop("__metadata__", None)
    return {
        name: list(struct.unpack_from(f"<{entry['shape'][0]}f", raw, 8 + length + entry["data_offsets"][0]))
        for name, entry in head.items()
    }


def write_metrics(store: RunStore, *lines: dict[str, Any]) -> None:
    text = "".join(json.dumps({"ts": 1.0, "attempt": 1, "rank": 0, **line}) + "\n" for line in lines)
    store.metrics.write_text(text, encoding="utf-8", newline="\n")


def commit(store: RunStore, step: int, files: dict[int, StagedFile | None], folder: Path, number: int) -> None:
    parts = {rank: CommitStaged(number, Position(step), [file] if file else []) for rank, file in files.items()}
    CheckpointStore(store.checkpoints).commit(
        number, parts, {}, mode="fsdp", devices=[f"cpu:{rank}" for rank in range(len(files))]
    )
    assert (folder / "manifest.json").is_file()


@pytest.fixture
def store(tmp_path: Path, runs_dir: Path) -> RunStore:
    """A run that was killed after two checkpoints: the first one file, the second in shards."""
    (tmp_path / "text.txt").write_bytes(TEXT)
    store = make_run(tmp_path, "interrupted", checkpoints=0, runs_dir=runs_dir)
    write_metrics(store, {"event": "step", "step": 1, "loss": 2.0}, {"event": "eval", "step": 1, "val_loss": 1.5})
    kept = CheckpointStore(store.checkpoints)
    number, folder = kept.begin()
    commit(store, 10, {0: tensor_file(folder / "weights.safetensors", {"w": [1.0, 2.0]})}, folder, number)
    number, folder = kept.begin()
    shards: dict[int, StagedFile | None] = {
        rank: tensor_file(folder / f"weights_shard{rank}.safetensors", {"w": [3.0 + rank]}, {"w": [rank, [2]]})
        for rank in range(2)
    }
    commit(store, 20, shards, folder, number)
    return store


def test_tables_go_below_the_run(store: RunStore) -> None:
    before = {name: digest for name, digest in tree(store.dir).items() if not name.startswith("exports")}
    tables = export_run(store, "csv")
    assert tables.path == default_place(store, "csv") == store.dir / "exports" / "csv"
    assert sorted(path.name for path in tables.path.iterdir()) == ["evals.csv", "steps.csv"]
    assert "steps.csv: 1 rows" in tables.details
    write_metrics(store, *({"event": "step", "step": step, "loss": 2.0} for step in (1, 2, 3)))
    assert "steps.csv: 3 rows" in export_run(store, "csv").details, "again, while it goes on"
    after = {name: digest for name, digest in tree(store.dir).items() if not name.startswith("exports")}
    assert {**before, "metrics.jsonl": ""} == {**after, "metrics.jsonl": ""}


def test_weights_of_a_killed_run_are_its_newest_checkpoint_put_together(store: RunStore, tmp_path: Path) -> None:
    made = export_run(store, "safetensors")
    assert made.path == store.dir / "exports" / "safetensors" / "model.safetensors"
    assert tensors_of(made.path) == {"w": [3.0, 4.0]} and "checkpoint 2, step 20" in made.details[0]
    older = export_run(store, "safetensors", tmp_path / "a b" / "first.safetensors", checkpoint=1)
    assert tensors_of(older.path) == {"w": [1.0, 2.0]} and older.path.name == "first.safetensors"
    (tmp_path / "there").mkdir()
    assert export_run(store, "safetensors", tmp_path / "there").path == tmp_path / "there" / "model.safetensors"


def test_a_model_counts_only_where_the_run_ended_in_order(store: RunStore) -> None:
    tensor_file(store.model, {"w": [9.0, 9.0]})
    assert tensors_of(export_run(store, "safetensors").path) == {"w": [3.0, 4.0]}, "it was resumed and killed since"
    store.write_state(store.stored_state().replace(state="stopped"))
    assert tensors_of(export_run(store, "safetensors").path) == {"w": [9.0, 9.0]}
    assert tensors_of(export_run(store, "safetensors", checkpoint=1).path) == {"w": [1.0, 2.0]}


def test_of_copies_that_trained_apart_the_best_is_taken(store: RunStore) -> None:
    number, folder = CheckpointStore(store.checkpoints).begin()
    own = {r: tensor_file(folder / f"weights_rank{r}.safetensors", {"w": [float(r)]}) for r in range(3)}
    commit(store, 30, dict(own), folder, number)
    made = export_run(store, "safetensors")
    assert tensors_of(made.path) == {"w": [0.0]} and "rank 0's copy (0 samples seen)" in made.details[0]
    for rank, loss in enumerate((2.0, 1.0, 3.0)):
        write_values(folder / f"rank{rank}.safetensors", {"counters": {"val_loss": loss}})
    made = export_run(store, "safetensors")
    assert tensors_of(made.path) == {"w": [1.0]} and "rank 1's copy (validation loss 1)" in made.details[0]


def test_a_damaged_newest_checkpoint_is_passed_over_but_not_where_it_was_asked_for(store: RunStore) -> None:
    shard = store.checkpoints / "2" / "weights_shard1.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    assert "checkpoint 1" in export_run(store, "safetensors").details[0]
    with pytest.raises(StateFileError, match="SHA-256 differs") as caught:
        export_run(store, "safetensors", checkpoint=2)
    assert caught.value.next_step == "Choose another checkpoint: 1 (step 10)."


BAD: dict[str, tuple[list[str], str]] = {
    "no such run": (["nobody", "--to", "csv"], "matches 'nobody'"),
    "no kind": (["RUN"], "--to"),
    "unknown kind": (["RUN", "--to", "onnx"], "onnx"),
    "no such checkpoint": (["RUN", "--to", "safetensors", "--checkpoint", "7"], "no checkpoint 7"),
    "a checkpoint that is no number": (["RUN", "--to", "safetensors", "--checkpoint", "last"], "last"),
    "a checkpoint of tables": (["RUN", "--to", "csv", "--generation", "1"], "holds weights"),
    "a recipe that cannot": (["RUN", "--to", "hf"], "MiniGPT cannot export its weights as"),
    "a folder with something in it": (["RUN", "--to", "csv", "--out", "FULL"], "is not empty"),
    "a file where a folder belongs": (["RUN", "--to", "csv", "--out", "FILE"], "is a file"),
    "a file that is there": (["RUN", "--to", "safetensors", "--out", "FULL/model.safetensors"], "already exists"),
    "a folder below a file": (["RUN", "--to", "csv", "--out", "FILE/x"], "FILE"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_exported_is_said_and_nothing_is_written(
    store: RunStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    (tmp_path / "FULL").mkdir()
    (tmp_path / "FULL" / "model.safetensors").write_bytes(b"mine")
    (tmp_path / "FILE").write_bytes(b"mine")
    before = tree(tmp_path)
    words, cause = BAD[case]
    places = {"RUN": str(store.dir)}
    given = [places.get(word, str(tmp_path / word) if word.startswith("F") else word) for word in words]
    assert main(["export", *given]) in (2, 3)
    error = capsys.readouterr().err.splitlines()
    assert len(error) == 3 and cause in " ".join(error), error
    assert tree(tmp_path) == before


def test_a_run_that_has_measured_and_committed_nothing(tmp_path: Path, runs_dir: Path) -> None:
    (tmp_path / "text.txt").write_bytes(TEXT)
    store = make_run(tmp_path, checkpoints=0, runs_dir=runs_dir)
    for kind, words in (("csv", "no metrics yet"), ("safetensors", "no checkpoint")):
        with pytest.raises(UsageError, match=words):
            export_run(store, kind)
    assert [path for path in store.dir.rglob("*") if path.is_file() and "exports" in path.parts] == []


def test_overwrite_replaces_files_of_the_same_names_only(store: RunStore, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("steps.csv", "mine.txt"):
        (out / name).write_text("before", encoding="utf-8")
    export_run(store, "csv", out, overwrite=True)
    assert (out / "steps.csv").read_text(encoding="utf-8").startswith("ts,")
    assert (out / "mine.txt").read_text(encoding="utf-8") == "before"


def test_a_failed_export_leaves_the_one_before(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(export_run(store, "csv").path)

    def fail(_lines: object, folder: Path, _progress: object) -> dict[str, int]:
        (folder / "steps.csv").write_text("half", encoding="utf-8")
        raise OSError(28, "no space left")

    monkeypatch.setattr(module, "write_tables", fail)
    with pytest.raises(RankdeckError, match="disk is full"):
        export_run(store, "csv")
    assert tree(default_place(store, "csv")) == before


def test_the_command_line_says_where_it_is(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", store.dir.name, "--to", "csv"]) == 0
    assert str(store.dir / "exports" / "csv") in capsys.readouterr().out
    assert main(["export", store.dir.name, "--to", "safetensors", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert Path(value["path"]).is_file() and value["kind"] in KINDS and value["details"]


def test_samples_are_shown_step_by_step(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", store.dir.name, "--samples"]) == 0
    assert "has no text samples" in capsys.readouterr().out
    write_metrics(
        store,
        *({"event": "sample", "step": step, "prompt": "say ", "text": f"words {step}"} for step in (10, 20)),
    )
    assert main(["show", store.dir.name, "--samples"]) == 0
    out = capsys.readouterr().out
    assert out.index("step 10") < out.index("say words 10") < out.index("say words 20")
    assert main(["show", store.dir.name, "--samples", "--step", "20", "--json"]) == 0
    assert [json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()] == ["words 20"]
    assert main(["show", store.dir.name, "--step", "30"]) == 0
    assert "no text samples at step 30" in capsys.readouterr().out


RECIPE = """
format = "rankdeck-recipe"
version = 1
name = "mine"
exports = ["hf"]
"""

CODE = """
import shutil
from workers.recipe_api import ConfigError, Export


def export(given: Export) -> None:
    shutil.copy(given.weights, given.target / "model.safetensors")
    (given.target / "config.json").write_text(str(given.config.seed), encoding="utf-8")
    print("a word on the way")
"""


def own_recipe(store: RunStore, code: str) -> RunStore:
    """The run as one of a recipe of the person's own."""
    folder = store.dir.parent / "recipes" / "mine"
    folder.mkdir(parents=True)
    write_atomic(folder / "recipe.toml", RECIPE)
    write_atomic(folder / "train.py", code)
    text = store.run_toml.read_text(encoding="utf-8").replace('recipe = "minigpt"', 'recipe = "mine"')
    text = text.split("[options]")[0]
    write_atomic(store.run_toml, text)
    assert store.config().recipe == "mine"
    return store


@pytest.mark.second_tier
@pytest.mark.slow
def test_a_recipe_makes_a_hugging_face_folder(store: RunStore, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="recipes need it")
    made = export_run(own_recipe(store, CODE), "hf", tmp_path / "out", checkpoint=2)
    assert sorted(path.name for path in made.path.iterdir()) == ["config.json", "model.safetensors"]
    assert tensors_of(made.path / "model.safetensors") == {"w": [3.0, 4.0]}
    assert "checkpoint 2" in made.details[0]


@pytest.mark.second_tier
@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("import shutil", "import shutil, a_package_nobody_has", "a_package_nobody_has"),
        ("def export", "def something", "has no function export"),
        ("    shutil.copy", '    raise ConfigError("x", "Too wide.", "Less.")\n    shutil.copy', "Too wide."),
        ("    shutil.copy", "    import os; os._exit(7)\n    shutil.copy", "exit code 7"),
        ("    shutil.copy", "    return\n    shutil.copy", "wrote nothing"),
    ],
)
def test_a_recipe_that_fails_to_export_says_why(
    store: RunStore, tmp_path: Path, old: str, new: str, cause: str
) -> None:
    pytest.importorskip("torch", reason="recipes need it")
    with pytest.raises(RankdeckError, match=cause) as caught:
        export_run(own_recipe(store, CODE.replace(old, new)), "hf", tmp_path / "out")
    assert caught.value.next_step
    assert not (tmp_path / "out").exists()
