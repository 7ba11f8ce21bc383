"""Files of every format, whole and broken: which texts come out, and what is counted as bad."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError, DatasetError, PreflightError, RankdeckError
from tests.helpers.written import ALL, pack, write_parquet, write_rows
from workers.data.reading.corpus import Corpus, open_corpus
from workers.data.reading.row_counts import BadRowLimit, RowCounts

pytestmark = pytest.mark.windows

TEXTS = ["The first text.", 'Größe "in quotes",\nwith a line, and\ttabs', "日本語 🎉", "last\r\nline\n"]


def documents(corpus: Corpus, counts: RowCounts | None = None) -> list[bytes]:
    found, part = [], b""
    for piece in corpus.pieces(counts):
        part += piece.data
        if piece.ends:
            found.append(part)
            part = b""
    assert not part
    return found


def read(path: Path, **options: Any) -> tuple[list[str], RowCounts, Corpus]:
    corpus, counts = open_corpus(str(path), options), RowCounts()
    texts = [document.decode("utf-8", "replace") for document in documents(corpus, counts)]
    return texts, counts, corpus


@pytest.mark.parametrize("name", ALL)
def test_every_format_holds_the_same_texts(tmp_path: Path, name: str) -> None:
    path = write_rows(tmp_path / name, TEXTS)
    texts, counts, corpus = read(path)
    assert texts == TEXTS
    assert (counts.documents, counts.bad_rows) == (4, 0)
    assert corpus.column == "text" and corpus.guessed


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.txt.gz", "a.py.zst", "a file without an ending"])
def test_text_is_one_document(tmp_path: Path, name: str) -> None:
    data = "first line\nsecond ü\n\nlast".encode()
    (tmp_path / name).write_bytes(pack(data, name))
    texts, counts, corpus = read(tmp_path / name)
    assert texts == [data.decode()]
    assert (counts.rows, counts.documents, counts.bad_rows, corpus.column) == (4, 1, 0, "")


def test_a_folder_is_read_in_order_whatever_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "mein Ördner"
    (folder / "b").mkdir(parents=True)
    write_rows(folder / "b" / "z.jsonl", ["jsonl"])
    write_rows(folder / "c.csv.gz", ["csv"], column="body")
    (folder / "a.txt").write_text("text", encoding="utf-8")
    (folder / "settings.json").write_text('{"lr": 0.1}', encoding="utf-8")
    (folder / "picture.png").write_bytes(b"\0\1")
    (folder / ".hidden.jsonl").write_text('{"text": "x"}', encoding="utf-8")
    texts, counts, corpus = read(folder)
    assert texts == ["text", "jsonl", "csv", '{"lr": 0.1}']
    assert [(s.name, s.column) for s in corpus.sources] == [
        ("a.txt", ""),
        ("b/z.jsonl", "text"),
        ("c.csv.gz", "body"),
        ("settings.json", ""),
    ]
    assert not counts.bad_rows


BROKEN: list[tuple[str, bytes, list[str], dict[str, int]]] = [
    ("a.jsonl", b'{"text": "ok"}\n{"text": "cut\n', ["ok"], {"broken": 1}),
    ("b.jsonl", b'{"text": "ok"}\n\n{"text": ""}\n{"text": null}\n{"text": " "}\n', ["ok"], {"empty": 3}),
    ("c.jsonl", b'{"text": "ok"}\n{"other": 1}\n[1]\n3\n', ["ok"], {"missing_column": 1, "no_names": 2}),
    ("d.jsonl", b'{"text": "ok"}\n{"text": "\xff"}\n{"text": "\\ud800"}\n', ["ok"], {"invalid_utf8": 2}),
    ("e.jsonl", b'\xef\xbb\xbf{"text": "ok"}\n{"text": {"a": 1}}\n{"text": 7}\n', ["ok", "7"], {"not_text": 1}),
    ("f.json", b'[{"text": "ok"}, {"text": "two"}, {"text": ', ["ok", "two"], {"broken": 1}),
    ("g.json", b'[{"text": "ok"}] and more', ["ok"], {"broken": 1}),
    ("h.json", b'{"version": 1, "data": [{"text": "ok"}, {"x": 1}]}', ["ok"], {"missing_column": 1}),
    ("i.json", b'["one text", "another"]', ["one text", "another"], {}),
    ("j.csv", b"id,text\n1,ok\n2\n\n3,a,b\n4,\n", ["ok"], {"missing_column": 1, "empty": 1, "broken": 1}),
    ("k.csv", b"id,text\n1,ok\n2,\xff\xfe\n", ["ok"], {"invalid_utf8": 1}),
    ("l.csv", b"id;text\n1;ok, with comma\n", ["ok, with comma"], {}),
    ("m.tsv", b"text\tid\nok\t1\n", ["ok"], {}),
    ("n.txt", b"good\nb\xe4d\ngood\n", ["good\nb�d\ngood\n"], {"kept": 1}),
    ("o.jsonl.gz", pack(b'{"text": "ok"}\n' * 3, "x.gz")[:-4], ["ok"] * 3, {"cut_off": 1}),
    ("p.txt.gz", pack(b"", "x.gz"), [""], {}),
]


@pytest.mark.parametrize(("name", "data", "texts", "bad"), BROKEN, ids=[row[0] for row in BROKEN])
def test_bad_rows_are_counted_and_left_out(
    tmp_path: Path, name: str, data: bytes, texts: list[str], bad: dict[str, int]
) -> None:
    (tmp_path / name).write_bytes(data)
    found, counts, _ = read(tmp_path / name)
    assert found == texts
    assert dict(counts.bad) == bad
    assert len(counts.examples) == min(5, sum(bad.values())) and all(name in where for where in counts.examples)


def test_a_zst_file_that_was_cut_off_is_noticed(tmp_path: Path) -> None:
    whole = pack(b'{"text": "some words"}\n' * 5000, "x.zst")
    (tmp_path / "a.jsonl.zst").write_bytes(whole[:-3])
    _, counts, _ = read(tmp_path / "a.jsonl.zst", text_column="text")
    assert counts.bad["cut_off"] == 1
    (tmp_path / "two.jsonl.zst").write_bytes(whole + whole)
    assert read(tmp_path / "two.jsonl.zst")[1].documents == 10_000


def test_a_broken_parquet_file_is_a_bad_row(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", [{"text": "fine"}])
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-8])
    texts, counts, _ = read(tmp_path)
    assert texts == ["fine"] and dict(counts.bad) == {"broken": 1}
    assert "b.parquet" in counts.examples[0]


def test_a_person_says_which_column_is_the_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a", "meta": {"note": "b"}, "other": "c"}\n', encoding="utf-8", newline="\n")
    assert read(path, text_column="other")[0] == ["c"]
    assert read(path, text_column="meta.note")[0] == ["b"]
    assert read(path, text_column="*")[0] == [path.read_text(encoding="utf-8")]
    with pytest.raises(ConfigError, match="No row that was looked at") as caught:
        open_corpus(str(path), {"text_column": "body"})
    assert caught.value.field == "text_column" and "text, meta, other" in caught.value.cause


def test_without_a_column_of_text_nothing_is_guessed(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("day,price\n1,2.5\n2,2.75\n", encoding="utf-8", newline="\n")
    with pytest.raises(DatasetError, match=r"day \(.*numbers.*\); price \(") as caught:
        open_corpus(str(tmp_path / "prices.csv"), {})
    assert "text_column" in caught.value.next_step
    assert read(tmp_path / "prices.csv", text_column="*")[0] == ["day,price\n1,2.5\n2,2.75\n"]


def test_a_limit_for_bad_rows() -> None:
    counts = RowCounts(rows=200)
    counts.add_bad("broken", "a.jsonl, line 3")
    counts.add_bad("broken", "a.jsonl, line 5")
    for accepted in ("", None, "2", "1%", "1.0 %", "100%"):
        BadRowLimit.parse(accepted).check(counts)
    counts.bad["empty"], counts.bad["kept"] = 90, 9  # neither is damage
    BadRowLimit.parse("1%").check(counts)
    counts.bad["empty"] = 101
    with pytest.raises(DatasetError, match="101 empty"):
        BadRowLimit.parse("1%").check(counts)
    del counts.bad["empty"], counts.bad["kept"]
    for exceeded in ("0", "1", "0.9%"):
        with pytest.raises(DatasetError, match="2 of 200 rows are bad: 2 broken") as caught:
            BadRowLimit.parse(exceeded).check(counts)
        assert "a.jsonl, line 3" in caught.value.cause
    for wrong in ("many", "-1", "101%", "1,5"):
        with pytest.raises(ConfigError) as refused:
            BadRowLimit.parse(wrong)
        assert refused.value.field == "max_bad_rows"


def test_a_missing_package_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.data.formats.importlib.util.find_spec", lambda _: None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(PreflightError, match="pyarrow") as caught:
        open_corpus(str(tmp_path), {})
    assert "[data]" in caught.value.next_step


def test_packed_text_must_be_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(pack(b"GIF\0\0", "a.gz"))
    with pytest.raises(RankdeckError, match="NUL"):
        read(tmp_path / "a.txt.gz")
