"""`rankdeck preview`, as a process: what it shows, as words and as JSON, and how it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.processes.program_environment import program_environment
from tests.helpers.written import write_rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

ROOT = Path(__file__).resolve().parents[4]
TEXTS = [f"A text of some length, number {number}, about größe." for number in range(300)]


def preview(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "core", "preview", "--devices", "cpux2", "--mode", "ddp", *words]
    return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=100, check=False)


def as_json(*words: str) -> dict[str, Any]:
    done = preview("--json", *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_shows_what_the_model_will_see(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "mein Täxt.jsonl.gz", [*TEXTS, ""], column="story")
    size = sum(len(text.encode()) + 2 for text in TEXTS)
    found = as_json("--dataset-file", str(path), "--seq-len", "32", "--batch-size", "4", "--dataset-chunk-size", "100")
    assert (found["text_column"], found["text_column_guessed"], found["exact"]) == ("story", True, True)
    assert [column["name"] for column in found["columns"]] == ["id", "story"]
    assert found["tokens"] == size
    assert (found["counts"]["rows"], found["counts"]["bad"]) == (301, {"empty": 1})
    samples = (size - int(size * 0.05) - 1) // 32
    assert found["samples"] == samples
    epoch = found["epoch"]
    assert (epoch["blocks"], epoch["chunks"], epoch["steps"]) == (1, -(-samples // 100), -(-samples // 8))
    first = found["first_samples"][0]
    assert len(found["first_samples"]) == len(found["first_documents"]) == 3
    assert first["length"] == 32 and first["ids"][:24] == list(TEXTS[0].encode()[:24])
    assert "".join(first["pieces"]).startswith(TEXTS[0][:24]) and len(first["pieces"]) == len(first["ids"]) == 32
    document = found["first_documents"][0]
    assert (document["text"], document["tokens"], document["split"]) == (TEXTS[0], len(TEXTS[0].encode()), True)


def test_a_tokenizer_in_a_file_of_its_own_needs_no_torch(tmp_path: Path) -> None:
    """`minigpt` has one; a folder in torch's place, found first, would end whoever imports it."""
    (tmp_path / "torch.py").write_text("raise SystemExit('torch is imported')", encoding="utf-8")
    path = write_rows(tmp_path / "rows.csv", TEXTS)
    program = tmp_path / "program.py"
    program.write_text(
        "from workers.programs.answer import answer; from workers.programs.preview_main import preview\n"
        "answer(preview)",
        encoding="utf-8",
    )
    for recipe in ("minigpt", "actv1"):
        config = {"recipe": recipe, "dataset_file": str(path), "options": {"tokenizer": "byte"}}
        request = tmp_path / "request.json"
        asked = {"config": config, "recipe": recipe, "read_all": False, "documents": 1}
        request.write_text(json.dumps(asked), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(program), str(request)],  # whose folder is searched first
            env=program_environment(os.environ), capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["first_samples"], done.stderr


def test_reading_all_keeps_the_tokens_for_training(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="BPE needs the tokenizers package")
    path = write_rows(tmp_path / "rows.csv", TEXTS)
    words = ("--dataset-file", str(path), "--seq-len", "16", "--set", "tokenizer=bpe", "--set", "vocab_size=300")
    assert not as_json(*words)["tokenised"]
    found = as_json(*words, "--all", "--documents", "1")
    assert found["tokenised"] and found["tokenizer"] == {"kind": "tokenizers", "vocab_size": 300, "from_recipe": True}
    assert found["tokens"] == as_json(*words)["tokens"] and as_json(*words)["tokenised"]
    assert len(found["first_samples"]) == 1


def test_in_words(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.tsv", TEXTS)
    done = preview("--dataset-file", str(path), "--seq-len", "32")
    assert done.returncode == 0, done.stderr
    for words in ("Text column: text (guessed", "300 rows, 300 documents", "An epoch:", "Sample 0 (32 tokens)"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--set", "text_column=body"), 2, "The columns are: id, text."),
        (("--set", "max_bad_rows=lots"), 2, "'lots' is not a limit"),
        (("--documents", "-1"), 2, "-1 documents"),
    ],
)
def test_it_refuses_in_three_lines(tmp_path: Path, words: tuple[str, ...], code: int, said: str) -> None:
    path = write_rows(tmp_path / "rows.jsonl", TEXTS)
    done = preview("--dataset-file", str(path), *words)
    assert done.returncode == code, done.stderr
    assert said in done.stderr and len(done.stderr.splitlines()) == 3
