"""Tokens made once: the same however they are batched, found again, made anew, finished after a kill, shared."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from core.errors import DatasetError, RankdeckError
from core.fault_points import ENV_FAULT
from tests.helpers.written import ALL, pack, write_rows
from workers.data.reading import pieces
from workers.data.reading.corpus import open_corpus, texts
from workers.data.tokens import token_cache, token_writer, tokenizer_spec
from workers.data.tokens.byte_or_bpe import train_bpe
from workers.data.tokens.token_cache import TokenData, tokenise
from workers.data.tokens.tokenizer_spec import TokenizerSpec, token_type

pytestmark = pytest.mark.windows

ROOT = Path(__file__).resolve().parents[4]
SCRIPT = """
import sys
from pathlib import Path
from workers.data.tokens import token_cache, token_writer
from workers.data.reading.corpus import open_corpus
from workers.data.tokens.tokenizer_spec import TokenizerSpec
token_writer._BATCH_PIECES, token_writer._SAY_EVERY_S = 2, 0
data = token_cache.tokenise(open_corpus(sys.argv[1], {}), TokenizerSpec(), Path(sys.argv[2]), print)
print("reused" if data.reused else "made", data.tokens, flush=True)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "Ablage mit Raum" / "tokens"


def make(dataset: Path, cache: Path, spec: TokenizerSpec | None = None, **options: str) -> TokenData:
    return tokenise(open_corpus(str(dataset), options), spec or TokenizerSpec(), cache)


def test_tokens_that_nothing_has_used_for_long_make_room(tmp_path: Path, cache: Path) -> None:
    def made(name: str) -> TokenData:
        (tmp_path / name).write_bytes(some_text(3000, seed=len(name)))
        return make(tmp_path / name, cache)

    old, used, young = made("a.txt"), made("bb.txt"), made("ccc.txt")
    (cache / "unfinished" / "parts").mkdir(parents=True)
    long_ago = time.time() - 91 * 86_400
    for folder in (old.folder, used.folder):
        os.utime(folder / "index.json", (long_ago, long_ago))
    os.utime(cache / "unfinished", (long_ago, long_ago))
    assert used.open()[0] >= 0  # a run maps it
    last = made("dddd.txt")
    assert {entry.name for entry in cache.iterdir()} == {data.folder.name for data in (used, young, last)}
    assert not make(tmp_path / "a.txt", cache).reused and make(tmp_path / "bb.txt", cache).reused


def texts_of(data: TokenData) -> list[bytes]:
    tokens, found, start = data.open(), [], 0
    for end in data.ends():
        found.append(bytes(tokens[start : int(end)]))
        start = int(end)
    assert start == len(tokens) == data.tokens
    return found


def some_text(size: int, seed: int = 0) -> bytes:
    """Lines of many lengths with letters of one to four bytes."""
    chance = random.Random(seed)
    words = ["the", "größe", "日本", "🎉", "x" * 40, "", "  ", "def f():"]
    out = ""
    while len(out) < size:
        out += " ".join(chance.choices(words, k=chance.randrange(12))) + chance.choice(["\n", "\n\n", "\r\n", " "])
    return out.encode()


def test_plain_texts_are_their_bytes(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    one, two = "one\nzwei ü\n".encode(), b"\xff broken\nend without newline"
    (folder / "Größe 1.txt").write_bytes(one)
    (folder / "2.txt").write_bytes(two)
    data = make(folder, cache)
    assert texts_of(data) == [two + b"\n\n", one + b"\n\n"]
    assert (data.documents, data.counts.rows, dict(data.counts.bad)) == (2, 4, {"kept": 1})


@pytest.mark.parametrize("name", ALL)
def test_a_text_is_the_same_tokens_in_any_format(tmp_path: Path, cache: Path, name: str) -> None:
    text = some_text(3000).decode()
    (tmp_path / "plain.txt").write_bytes(text.encode())
    plain = make(tmp_path / "plain.txt", cache)
    rows = make(write_rows(tmp_path / name, [text]), cache)
    assert np.array_equal(rows.open(), plain.open()) and rows.documents == 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"])
def test_how_the_pieces_are_batched_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, seed: int
) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES", 64)
    monkeypatch.setattr(pieces, "MAX_LINE_BYTES", 50)
    text = some_text(5000, seed)
    if name.startswith("a.txt"):
        path = tmp_path / name
        path.write_bytes(pack(text, name))
        documents = [text]
    else:
        documents = [line.encode() for line in text.decode().split("\n") if line.strip()]
        path = write_rows(tmp_path / name, [line.decode() for line in documents])
    whole = make(path, tmp_path / "whole")
    assert texts_of(whole) == [document + b"\n\n" for document in documents]
    monkeypatch.setattr(token_writer, "_BATCH_PIECES", 3)
    batched = make(path, tmp_path / "batched")
    assert np.array_equal(batched.open(), whole.open()) and np.array_equal(batched.ends(), whole.ends())
    assert batched.counts.as_dict() == whole.counts.as_dict()


def test_pieces_end_with_a_line_or_between_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES", 16)
    monkeypatch.setattr(pieces, "MAX_LINE_BYTES", 7)
    text = ("short\n" * 5 + "日本語🎉ü" * 30 + "\nend").encode()
    (tmp_path / "a.txt").write_bytes(text)
    with (tmp_path / "a.txt").open("rb") as stream:
        found = list(pieces.cut_text(stream))
    assert b"".join(found) == text and max(map(len, found)) <= 16 + 7
    for piece in found:
        piece.decode("utf-8")
    assert found[0].endswith(b"\n")


def bpe(folder: Path, dataset: Path) -> TokenizerSpec:
    pytest.importorskip("tokenizers", reason="BPE needs the tokenizers package")
    train_bpe(texts(open_corpus(str(dataset), {}), 1 << 20), 320, folder / "tokenizer.json")
    return TokenizerSpec("tokenizers", str(folder / "tokenizer.json"))


def test_bpe_tokens_are_those_of_the_text_at_once(tmp_path: Path, cache: Path) -> None:
    text = some_text(4000)
    (tmp_path / "a.txt").write_bytes(text)
    spec = bpe(tmp_path, tmp_path / "a.txt")
    data, encoder = make(tmp_path / "a.txt", cache, spec), spec.open()
    assert data.open().dtype == token_type(encoder.vocab_size) == np.dtype("<u2")
    wanted = [*encoder.encode([text])[0], *encoder.encode([b"\n\n"])[0]]
    assert data.open().tolist() == wanted
    assert encoder.decode(data.open().tolist()) == text.decode() + "\n\n"


def test_a_long_text_is_cut_where_no_token_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = some_text(30_000) + b"    def f(x):\n\n\n        return x;\n\t# \xe6\x97\xa5\r\n \n" * 40
    (tmp_path / "a.txt").write_bytes(text)
    encoder = bpe(tmp_path, tmp_path / "a.txt").open()
    (whole,) = encoder.encode([text])
    monkeypatch.setattr(tokenizer_spec, "_PART_CHARS", 50)
    parts_, empty = encoder.encode([text, b""])
    assert len(list(encoder._parts(text.decode()))) > 50  # type: ignore[attr-defined]
    assert np.array_equal(parts_, whole) and len(empty) == 0


def test_a_models_own_token_may_stand_between_documents(tmp_path: Path, cache: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", ["one", "two"])
    spec = TokenizerSpec(separator_id=0)
    assert texts_of(make(path, cache, spec)) == [b"one\0", b"two\0"]


def test_tokens_are_found_again_until_something_changes(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "some words", "other": "more of them"}\n', encoding="utf-8")
    first = make(path, cache)
    assert not first.reused
    again = make(path, cache)
    assert again.reused and again.folder == first.folder and again.counts.as_dict() == first.counts.as_dict()
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    assert make(path.rename(moved / "a.jsonl"), cache).reused
    path = moved / "a.jsonl"
    others = [make(path, cache, text_column="other"), make(path, cache, text_column="*")]
    others.append(make(path, cache, TokenizerSpec(separator="\n")))
    path.write_text('{"text": "other words", "other": "more of them"}\n', encoding="utf-8")
    others.append(make(path, cache))
    assert not any(data.reused for data in others)
    assert len({data.folder for data in (first, *others)}) == 5


@pytest.mark.parametrize("damage", ["index.json", "tokens.bin", "ends.bin", "short"])
def test_damaged_tokens_are_made_anew(tmp_path: Path, cache: Path, damage: str) -> None:
    (tmp_path / "a.txt").write_text("words and words", encoding="utf-8")
    first = make(tmp_path / "a.txt", cache)
    tokens = bytes(first.open())
    if damage == "short":
        (first.folder / "tokens.bin").write_bytes(tokens[:-1])
    elif damage == "index.json":
        (first.folder / damage).write_text("{", encoding="utf-8")
    else:
        (first.folder / damage).unlink()
    second = make(tmp_path / "a.txt", cache)
    assert not second.reused and bytes(second.open()) == tokens


def test_a_dataset_without_a_text_says_so(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x"\n{"text": ""}\n', encoding="utf-8")
    with pytest.raises(DatasetError, match="2 of 2 rows are bad") as caught:
        make(tmp_path / "a.jsonl", cache, text_column="text")
    assert "line 1" in caught.value.cause


@pytest.fixture
def many(tmp_path: Path) -> Path:
    folder = tmp_path / "viele Ördner"
    folder.mkdir()
    for number in range(8):
        (folder / f"{number}.txt").write_bytes(some_text(900, number))
    return folder


def test_a_file_that_cannot_be_read_is_named(many: Path, cache: Path) -> None:
    corpus = open_corpus(str(many), {})
    (many / "5.txt").unlink()
    with pytest.raises(DatasetError, match=r"5\.txt"):
        tokenise(corpus, TokenizerSpec(), cache)


@pytest.mark.parametrize("name", ["many", "a.txt", "a.csv", "a.jsonl.gz", "a.parquet"])
def test_it_says_how_far_it_is(many: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1 << 17)
    monkeypatch.setattr(token_writer, "_SAY_EVERY_S", 0)
    path = many if name == "many" else many.parent / name
    if name == "a.txt":
        path.write_bytes(some_text(1 << 20))
    elif name != "many":
        write_rows(path, [f"{number} " + some_text(300, number).decode() for number in range(5000)])
    said: list[str] = []
    tokenise(open_corpus(str(path), {}), TokenizerSpec(), cache, said.append)
    shares = [int(words.split()[1]) for words in said if words.startswith("tokenising")]
    assert shares[0] < 30 and shares[-1] == 100 and shares == sorted(shares) and len(set(shares)) > 4


@pytest.mark.parametrize("name", ["a.txt.gz", "a.jsonl.gz", "a.jsonl.zst"])
@pytest.mark.parametrize("left", [0.6, 0.001])
def test_a_packed_file_that_was_cut_off_gives_what_it_has(tmp_path: Path, name: str, left: float) -> None:
    lines = [some_text(300, number).decode() for number in range(300)]
    path = tmp_path / name
    if name.startswith("a.txt"):
        path.write_bytes(pack("\n".join(lines).encode(), name))
    else:
        write_rows(path, lines)
    path.write_bytes(path.read_bytes()[: int(left * path.stat().st_size)])
    options = {"text_column": "text"} if "jsonl" in name else {}
    try:
        data = make(path, tmp_path / "cache", **options)
    except DatasetError as error:
        assert "cut off" in error.cause or left < 0.01
        assert name != "a.jsonl.gz" or left < 0.01
        return
    assert data.counts.bad["cut_off"] == 1
    if name == "a.jsonl.gz":
        kept = texts_of(data)
        assert len(kept) > 100 and kept == [line.encode() + b"\n\n" for line in lines[: len(kept)]]


def test_what_is_packed_and_no_text_is_refused(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(pack(b"text\n" * 100 + b"\0", "a.gz"))
    with pytest.raises(DatasetError, match="NUL bytes"):
        make(tmp_path / "a.txt.gz", cache)


def test_a_bad_line_far_down_is_named_by_its_place(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES", 64)
    (tmp_path / "a.txt").write_bytes(b"a line\n" * 100)
    (tmp_path / "b.txt").write_bytes(b"a line\n" * 100 + b"\xff\n" + b"more\n" * 10)
    (tmp_path / "c.jsonl").write_bytes(b'{"text": "a line"}\n{"text": 1e3}\n{"text": []}\n')
    assert make(tmp_path, cache).counts.examples == [
        "b.txt, line 101: not UTF-8 and kept as they are",
        "c.jsonl, row 3: empty",
    ]


def run_script(dataset: Path, cache: Path, fault: str = "") -> subprocess.Popen[str]:
    """Tokenises in a process of its own, two pieces at a time."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", ENV_FAULT: fault}
    command = [sys.executable, "-c", SCRIPT, str(dataset), str(cache)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8")


@pytest.mark.parametrize("fault", ["tokens_written@6", "before_index"])
def test_tokens_of_a_killed_writer_are_made_anew(many: Path, cache: Path, tmp_path: Path, fault: str) -> None:
    with run_script(many, cache, fault) as killed:
        killed.communicate(timeout=60)  # reads what it says: a pipe of Windows holds a few lines only
        assert killed.returncode != 0
    data = make(many, cache)
    assert not data.reused and bytes(data.open()) == bytes(make(many, tmp_path / "other").open())


def test_two_runs_at_once_make_it_once(many: Path, cache: Path) -> None:
    started = [run_script(many, cache), run_script(many, cache)]
    ends = [process.communicate(timeout=90)[0].splitlines()[-1].split() for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert sorted(word for word, _ in ends) in (["made", "reused"], ["made", "made"])
    assert len({tokens for _, tokens in ends}) == 1
    assert len(list(cache.iterdir())) == 1


def test_a_full_disk_is_said_beforehand(many: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = token_cache.shutil.disk_usage(many)
    monkeypatch.setattr(token_cache.shutil, "disk_usage", lambda _: usage._replace(free=100))
    with pytest.raises(RankdeckError, match="are free there"):
        make(many, cache)
