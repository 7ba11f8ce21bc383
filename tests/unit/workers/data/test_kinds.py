"""Files as people have them: what each is understood as, its documents, what is left out, or why it is refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from core.errors import RankdeckError
from tests.helpers.written import write_parquet
from workers.data.reading.corpus import open_corpus
from workers.data.reading.row_counts import BadRowLimit, RowCounts

pytestmark = pytest.mark.windows

ROWS = 40
TEXTS = [f"This is sentence number {n} of a story, and it is {n * n} words long." for n in range(ROWS)]


def lines(rows: Sequence[object]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def whole(value: object, indent: int | None = None) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=indent).encode()


def named(**columns: Sequence[object]) -> list[dict[str, object]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def table(rows: Sequence[Mapping[str, object]], delimiter: str = ",", header: bool = True) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


TEXT_ROWS = named(id=range(ROWS), text=TEXTS)
CHATS = [
    {"messages": [{"role": "user", "content": f"Question {n}?"}, {"role": "assistant", "content": text}]}
    for n, text in enumerate(TEXTS)
]
SHAREGPT = [
    {"id": f"identity_{n}", "conversations": [{"from": "human", "value": "Hi."}, {"from": "gpt", "value": text}]}
    for n, text in enumerate(TEXTS)
]
ALPACA = named(
    instruction=[f"Say the number {n} in words." for n in range(ROWS)], input=[""] * ROWS, output=TEXTS
)  # fmt: skip
QUESTIONS = [f"What is the square of the number {n}?" for n in range(ROWS)]
SQUAD = [
    {"title": "Numbers", "context": TEXTS[0], "question": q, "answers": {"text": ["four"], "answer_start": [3]}}
    for q in QUESTIONS
]
PLAIN = [text.replace(",", "") for text in TEXTS]
STRAY = table(named(id=range(ROWS), text=PLAIN)).replace(b"\n10,This", b'\n10,"This', 1)
DISCORD = {
    "guild": {"id": "1", "name": "Club"}, "channel": {"id": "2", "name": "general"},
    "messages": [{"id": str(n), "timestamp": "2024-01-01T10:00:00", "content": text, "author": {"name": "ann"}}
                 for n, text in enumerate(TEXTS)],
}  # fmt: skip
EXPORT = [{"title": "Chat", "create_time": 1.7e9, "mapping": {"a": {"message": {"content": t}}}} for t in TEXTS]
LOGS = [
    {"ts": f"2024-01-01T10:00:{n:02}", "level": "INFO", "message": text} | ({"user": f"u{n}"} if n % 2 else {"code": n})
    for n, text in enumerate(TEXTS)
]
WHATSAPP = "".join(f"12/31/20, 9:{n:02} PM - Ann: {text}\n" for n, text in enumerate(TEXTS)).encode()
SUBTITLES = "".join(f"{n + 1}\n00:00:{n:02},000 --> 00:00:{n:02},900\n{t}\n\n" for n, t in enumerate(TEXTS)).encode()
SENTIMENT = named(a=["0", "4"] * 20, b=range(10**9, 10**9 + ROWS), c=["Mon Apr 06 22:19:45 PDT 2009"] * ROWS, d=TEXTS)
HUGE = "A long line of words. " * 200_000


class Kind(NamedTuple):
    name: str
    data: bytes
    form: str
    column: str = "text"
    documents: int = ROWS
    bad: dict[str, int] | None = None
    remark: str = ""
    options: dict[str, str] | None = None


BESIDE_WORDS = [
    ("saved.txt", "<!-- saved from url=(0014)about:internet -->\n<html><body>Words.</body></html>", "HTML (saved.txt)"),
    ("rows.xml", "<rows>\n<row><text>Some words.</text></row>\n</rows>", "XML (rows.xml)"),
    ("pg.sql", "--\n-- A\n--\n\nSET a = 0;\r\nSELECT b('a');\n\nCREATE TABLE a (id int);\n", "a database dump"),
    ("song.lrc", "[00:12.10]Some words\n[00:15.90]More words\n", "subtitles with times"),
    ("film.ass", "[Script Info]\nTitle: Film\n", "subtitles with times"),
    ("one.eml", "Received: from a\n\tby b\nFrom: a@b.example\nSubject: Words\n\nWords.\n", "a mail with headers"),
    ("syslog.log", "Jan  2 03:04:05 host program[1]: Words.\n" * 2, "lines with dates or times"),
    ("irc.log", "[10:01] <ann> Words.\n[10:02] <bob> More words.\n", "lines with dates or times"),
    ("post.md", "---\ntitle: Words\ndate: 2020-01-02\n---\n\nSome words.\n", "front matter above the text"),
    ("fix.patch", "diff --git a/x b/x\n--- a/x\n+++ b/x\n+Words.\n", "a patch (fix.patch)"),
    ("books.bib", "@book{ann2020,\n  title = {Words},\n}\n", "BibTeX (books.bib)"),
    ("parts.txt", "A heading.\n<div class='a'>Some words.</div>\n" * 2, "HTML or XML tags"),
    ("query.txt", "SELECT a, b\nFROM t\nWHERE a = 1;\nselect c\nfrom u\nwhere c > 2;\n", "program code"),
    ("update.txt", "UPDATE t SET a = 1 WHERE b = 2;\nDELETE FROM t WHERE a = 3;\n", "program code"),
    ("style.txt", "body {\n  color: red;\n}\np, li {\n  margin: 0 auto;\n}\n", "program code"),
    (
        "program.txt",
        "import os\n\ndef main(path):\n    for name in os.listdir(path):\n        print(name)\n",
        "program code",
    ),
    ("java.txt", "public class A {\n  int b = c(d);\n  return b;\n}\n", "program code"),
    (
        "trace.txt",
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    b()\nValueError: c\n',
        "errors of programs",
    ),
    (
        "java_trace.txt",
        "java.io.IOException: no file\n\tat a.b.C.d(C.java:12)\n\tat a.b.E.f(E.java:7)\n",
        "errors of programs",
    ),
    ("ner.txt", "Ann NNP B-PER\nreads VBZ O\na DT O\nbook NN O\n. . O\n", "words with tags, a word in each line"),
    ("brown.txt", "The/AT jury/NN said/VBD\n" * 2, "words with tags"),
    ("protein", ">sp|P1\n" + "MKTAYIAKQR" * 6 + "\n" + "QISFVKSHFS" * 6 + "\n", "long strings without spaces"),
    ("encoded.txt", "SGVsbG8gd29ybGQhIEhlbGxvIHdvcmxkISBIZWxsbyB3b3JsZCE\n" * 9, "long strings without spaces"),
    ("run.toml", "[run]\nname = 'a'\nsteps = 3\n", "names and values, as in settings"),
    ("run.yaml", "run:\n  name: a\n  steps: 3\n", "names and values, as in settings"),
    ("card.vcf", "BEGIN:VCARD\nFN:Ann\nEND:VCARD\n", "names and values, as in settings"),
    ("paper.txt", "\\section{Words}\nSome \\emph{words} here.\n", "LaTeX (paper.txt)"),
    ("house.txt", "[[House]] is a [[building]].\nMore {{words}}.\n", "wiki markup"),
    ("chat.txt", "<|im_start|>user\nSome words?<|im_end|>\n" * 2, "special tokens, spelled out"),
    ("wrong.txt", "Gr\u00c3\u00b6\u00c3\u009fe und mehr\n" * 2, "letters that were decoded wrongly"),
    ("ids.txt", "12 9 4004\n7 1 16\n", "lines that begin with numbers"),
    ("game.pgn", "e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6\n", "more numbers and signs than words"),
    ("words.txt", "house\nriver\nhill\n", "one word in each line"),
    ("spaces.txt", " \n\t\n\n", "nothing but spaces"),
    ("crawl.wet", "WARC/1.0\r\nWARC-Type: conversion\r\n\r\nSome words.\n", "a web archive with headers"),
    ("alice.txt", "Project Gutenberg's Alice, by Lewis Carroll\n\nSome words.\n", "Project Gutenberg's preamble"),
    ("etext.txt", "***The Project Gutenberg Etext of Alice***\n\nSome words.\n", "Project Gutenberg's preamble"),
    ("turns.txt", "Some words ? __eou__ More words . __eou__\n" * 2, "special tokens, spelled out"),
    ("movie_lines.txt", "L1 +++$+++ u0 +++$+++ ANN +++$+++ Some words.\n" * 2, "special tokens, spelled out"),
    ("masked.txt", "Some [MASK] here [SEP] and there.\n" * 2, "special tokens, spelled out"),
    ("subwords.txt", "some wo@@ rds and mo@@ re\n" * 2, "special tokens, spelled out"),
    ("de.po", 'msgid "Some words."\nmsgstr "Einige Worte."\n' * 2, "translations with their keys"),
    ("tree.mrg", "( (S (NP (DT The) (NN house)) (VP (VBD was) (JJ old)) (. .)) )\n" * 2, "words with tags"),
    ("lost.txt", "Gr\ufffd\ufffde und mehr als ein Wort\n" * 2, "letters that were decoded wrongly"),
    ("10-k.txt", "<SEC-DOCUMENT>0.txt : 2019\n<TYPE>10-K\nSome words.\n", "XML (10-k.txt)"),
    ("corpus.yml", "categories:\n- a\nconversations:\n- - Some words?\n  - More words.\n", "rows in YAML"),
    ("rows.jsonc", '// Words.\n[\n{"text": "Some words."}\n]\n', "JSON (rows.jsonc)"),
]
READ = [
    Kind("rows.jsonl", lines(TEXT_ROWS), "JSON Lines"),
    Kind("lines.json", lines(named(text=TEXTS, tags=[["a", "b"]] * ROWS)), "JSON Lines"),
    Kind("array.jsonl", whole(TEXT_ROWS), "a JSON array"),
    Kind("array.json", whole(TEXT_ROWS, 2), "a JSON array"),
    Kind("pretty.jsonl", b"\n".join(whole(row, 2) for row in TEXT_ROWS), "JSON objects one after the other"),
    Kind("joined.json", b"".join(whole(row) for row in TEXT_ROWS), "JSON objects one after the other"),
    Kind("pandas.json", whole({"text": dict(enumerate(TEXTS)), "n": dict(enumerate(range(ROWS)))}),
         "JSON, column by column"),
    Kind("index.json", whole(dict(enumerate(TEXT_ROWS))), "a JSON object of rows"),
    Kind("by_name.json", whole({f"page-{n}": row for n, row in enumerate(TEXT_ROWS)}), "a JSON object of rows"),
    Kind("split.json", whole({"columns": ["id", "text"], "index": [*range(ROWS)], "data": [*enumerate(TEXTS)]}),
         "JSON with the columns' names apart"),
    Kind("pandas_table.json", whole({"schema": {"fields": [{"name": "id"}]}, "data": TEXT_ROWS}),
         "a JSON array below “data”"),
    Kind("columns.json", whole({"id": [*range(ROWS)], "text": TEXTS}), "JSON, column by column"),
    Kind("wrapped.json", whole({"data": {"train": TEXT_ROWS, "test": TEXT_ROWS[:3]}}),
         "a JSON array below “data.train”", remark="test"),
    Kind("splits.json", whole({"train": TEXT_ROWS, "validation": TEXT_ROWS[:3]}), "a JSON array below “train”",
         remark="validation, which is not read"),
    Kind("wide.json", whole({"id": {str(n): n for n in range(400)},
         "text": {str(n): TEXTS[n % ROWS] for n in range(400)}}),
         "JSON, column by column", documents=400),
    Kind("separators.jsonl", lines(named(text=[f"{t}\u2028\x85More." for t in TEXTS])), "JSON Lines"),
    Kind("deep.jsonl", lines([{"a": {"b": {"text": t}}} for t in TEXTS]), "JSON Lines", "a.b.text"),
    Kind("large.json", lines([{"texte": " ".join(TEXTS * 500)}, {"texte": TEXTS[0]}]),
         "JSON objects one after the other",
         "texte", 2),
    Kind("large_wrapped.json", whole({"data": [{"text": " ".join(TEXTS * 500)}, {"text": TEXTS[0]}]}),
         "a JSON array below “data”", documents=2),
    Kind("chinese.csv", "".join(["id,句子\n", *(f"{n},今天天气很好我们去公园玩吧{n}\n" for n in range(ROWS))]).encode(),
         "CSV", "句子"),
    Kind("blank_lines.csv", table(TEXT_ROWS).replace(b"\r\n", b"\r\n\r\n"), "CSV"),
    Kind("wiki.txt", b"[[Category:A]] text\n", "plain text", "", 1),
    Kind("strings.json", whole(TEXTS), "a JSON array", "value"),
    Kind("article.json", whole({"url": "http://a.example", "text": TEXTS[0]}), "one JSON object", documents=1),
    Kind("nested.jsonl", lines([{"data": {"id": n, "text": t}} for n, t in enumerate(TEXTS)]), "JSON Lines",
         "data.text"),
    Kind("viewer.json", whole({"features": [], "rows": [{"row_idx": n, "row": row} for n,
         row in enumerate(TEXT_ROWS)]}),
         "a JSON array below “rows”", "row.text"),
    Kind("discord.json", whole(DISCORD), "a JSON array below “messages”", "content"),
    Kind("wiki.jsonl", lines(named(id=range(ROWS), url=["https://x.example/a"] * ROWS, title=["A b"] * ROWS,
         text=TEXTS)),
         "JSON Lines"),
    Kind("code.jsonl", lines(named(repo=["a/b"] * ROWS, path=["x/y.py"] * ROWS,
         content=["def f():\n    pass\n"] * ROWS)),
         "JSON Lines", "content"),
    Kind("logs.jsonl", lines(LOGS), "JSON Lines", "message"),
    Kind("lines.txt", lines(TEXT_ROWS), "JSON Lines", remark="lines.txt holds JSON Lines"),
    Kind("lines.csv", lines(TEXT_ROWS), "JSON Lines", remark="is not a table"),
    Kind("nan.jsonl", lines(named(text=[t if n % 4 else float("nan") for n, t in enumerate(TEXTS)])), "JSON Lines",
         documents=30, bad={"empty": 10}),
    Kind("words_for_nothing.csv", table(named(text=[t if n % 4 else "None" for n, t in enumerate(TEXTS)])),
         "CSV with one column", documents=30, bad={"empty": 10}),
    Kind("broken_array.json", whole(TEXT_ROWS).replace(b'"id": 20', b'"id": ,', 1), "a JSON array", documents=39,
         bad={"broken": 1}),
    Kind("rows.csv", table(TEXT_ROWS), "CSV"),
    Kind("tabs.csv", table(TEXT_ROWS, "\t"), "TSV"),
    Kind("pipe.csv", table(TEXT_ROWS, "|"), "CSV with vertical bars"),
    Kind("commas.tsv", table(TEXT_ROWS), "CSV"),
    Kind("semiq.csv", b'"id";"text, long";"preis"\n' +
         b"".join(f'"{n}";"{t}";"3,50"\n'.encode() for n, t in enumerate(TEXTS)), "CSV with semicolons", "text, long"),
    Kind("excel.csv", b"\xef\xbb\xbfsep=;\r\n" + table(TEXT_ROWS, ";"), "CSV with semicolons"),
    Kind("headerless.csv", table(SENTIMENT, header=False), "CSV without a header", "4"),
    Kind("spam.tsv", "".join(f"{'spam' if n % 2 else 'ham'}\t{t}\n" for n, t in enumerate(TEXTS)).encode(),
         "TSV without a header", "2"),
    Kind("one_column.csv", b"review\n" + "\n".join(TEXTS).encode(), "CSV with one column", "review"),
    Kind("essays.csv", table(named(id=range(ROWS), text=["\n".join(TEXTS)] * ROWS, score=["3"] * ROWS)), "CSV"),
    Kind("labels.csv", table(named(text=[f"{t}\nAnd more, of it." for t in TEXTS], label=[0, 1] * 20)), "CSV"),
    Kind("stray.csv", STRAY, "CSV", documents=39, bad={"broken": 1}),
    Kind("stray_pair.csv", STRAY.replace(b"900 words long.", b'900 words long."', 1), "CSV", documents=39,
         bad={"broken": 1}),
    Kind("stray_in_quoted.csv", table(TEXT_ROWS).replace(b'\n10,"', b'\n10,"" "', 1), "CSV", documents=39,
         bad={"broken": 1}),
    Kind("stray.tsv", b"id\ttext\n" + "".join(f'{n}\t{chr(34) * (n == 9)}{t}\n' for n, t in enumerate(TEXTS))
         .encode(), "TSV"),
    Kind("spoken.tsv", b"n\ttext\n" + "".join(f'{n}\t"Oh," {t}\n' for n, t in enumerate(TEXTS)).encode(), "TSV"),
    Kind("huge.csv", table([{"id": 0, "text": HUGE}, {"id": 1, "text": HUGE}]), "CSV", documents=2),
    Kind("kaggle.csv", table(named(Id=range(ROWS), ProfileName=["Ann B"] * ROWS, Summary=["So good"] * ROWS,
         Text=TEXTS)),
         "CSV", "Text"),
    Kind("twice.csv", b"text,text,n\n" + b"".join(f'"{t}",{n},{n}\n'.encode() for n, t in enumerate(TEXTS)), "CSV"),
    Kind("rows.csv.gz", gzip.compress(table(TEXT_ROWS, ";")), "CSV with semicolons"),
    Kind("bom.txt", b"\xef\xbb\xbfA text.\n", "plain text", "", 1),
    Kind("latin.txt", "Größe\nund mehr\n".encode("latin-1"), "plain text", "", 1, {"kept": 1}),
    Kind("whatsapp.txt", WHATSAPP, "plain text", "", 1, remark="lines with dates or times"),
    Kind("iphone.txt", b"[12.03.24, 14:05:06] Ann: Hello.\n" * 2, "plain text", "", 1, remark="lines with dates"),
    Kind("server.log", b"2024-01-01 12:00:00,123 INFO start\n" * 2, "plain text", "", 1, remark="lines with dates"),
    Kind("subtitles.srt", SUBTITLES, "plain text", "", 1, remark="subtitles with times"),
    *(Kind(name, text.encode(), "plain text", "", 1, remark=remark) for name, text, remark in BESIDE_WORDS),
    Kind("reddit.jsonl", lines(named(body=[*TEXTS * 2 * ROWS, *["[deleted]", "[removed]", "[deleted] "] * 70])),
         "JSON Lines", "body", 3410, remark="× “This is sentence number 0"),
    Kind("removed.jsonl", lines(named(body=[*(f"{t} {n}" for n in range(9) for t in TEXTS), *["[removed]"] * 8])),
         "JSON Lines", "body", 368, remark="Of 368 documents, many are the same text: 8 × “[removed]”."),
    Kind("html.csv", table(named(id=range(ROWS), body=[f"<p class='a'>{t}</p>" for t in TEXTS])), "CSV", "body",
         remark="The texts in column body hold more than words, which is trained too: HTML or XML tags."),
    Kind("escaped.jsonl", lines([json.dumps(row) for row in TEXT_ROWS]), "JSON Lines", "value",
         remark="The texts in column value hold more than words, which is trained too: JSON."),
    Kind("caret.csv", table(TEXT_ROWS, "^"), "CSV with “^”"),
    Kind("talk.vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\nHello.\n", "plain text", "", 1, remark="subtitles with"),
    Kind("page.html", b"<!DOCTYPE html>\n<html><p>Words.</p></html>", "plain text", "", 1, remark="HTML (page.html)"),
    Kind("wiki.xml", b"<mediawiki><page>Words.</page></mediawiki>", "plain text", "", 1, remark="XML (wiki.xml)"),
    Kind("a.ipynb", whole({"cells": [{"source": TEXTS}], "nbformat": 4}, 1), "plain text", "", 1,
         remark="a Jupyter notebook, with outputs"),
    Kind("dump.sql", b"-- MySQL dump 10\n\nINSERT INTO `a` VALUES (1,'b');\n", "plain text", "", 1,
         remark="a database dump"),
    Kind("copy.sql", b"COPY public.a (id, b) FROM stdin;\n1\tWords.\n\\.\n", "plain text", "", 1,
         remark="a database dump"),
    Kind("mails.mbox", b"From a@b.c Mon Jan 1\nSubject: Hello\n\nWords.\n", "plain text", "", 1,
         remark="a mailbox with headers"),
    Kind("printed.txt", b"{'text': 'Python prints it so'}\n" * 9, "plain text", "", 1, remark="as Python prints them"),
    Kind("rows.yaml", b"- text: Words.\n  label: 1\n", "plain text", "", 1, remark="rows in YAML"),
    Kind("fasttext.txt", b"__label__2 Some words.\n" * 2, "plain text", "", 1, remark="labels and texts"),
    Kind("tweets.js", b'window.YTD.tweets.part0 = [ {"full_text": "Words."} ]', "plain text", "", 1,
         remark="JavaScript with data"),
    Kind("table.md", b"| id | text |\n|---|---|\n| 1 | Words. |\n", "plain text", "", 1, remark="a table in Markdown"),
    Kind("paper.tex", b"\\documentclass{article}\n\\begin{document}\nWords.\n", "plain text", "", 1),
    Kind("mac.csv", table(TEXT_ROWS).replace(b"\r\n", b"\r"), "CSV"),
    Kind("poem.csv", "\n".join(PLAIN).encode(), "CSV with one column without a header", "1"),
    Kind("commas.jsonl", b",\n".join(whole(row) for row in TEXT_ROWS), "JSON objects one after the other"),
    Kind("list.jsonl", b"[\n" + b",\n".join(whole(row) for row in TEXT_ROWS) + b"\n]\n", "a JSON array"),
    Kind("strings.jsonl", lines(TEXTS), "JSON Lines", "value"),
    Kind("rows.jsonl.gz", gzip.compress(lines(TEXT_ROWS)), "JSON Lines"),
    Kind("long.jsonl", lines([{"text": HUGE}, {"text": TEXTS[0]}]), "JSON Lines", documents=2),
    Kind("search.jsonl", lines([{"_index": "a", "_id": str(n), "_source": {"body": t}} for n, t in enumerate(TEXTS)]),
         "JSON Lines", "_source.body"),
    Kind("slack.json", whole([{"type": "message", "user": "U1", "text": t, "ts": "1.2"} for t in TEXTS]),
         "a JSON array"),
    Kind("tasks.json", whole([{"id": n, "annotations": [], "data": {"text": t}} for n, t in enumerate(TEXTS)]),
         "a JSON array", "data.text"),
    Kind("tatoeba.tsv", "".join(f"{n}\tdeu\t{t}\n" for n, t in enumerate(TEXTS)).encode(), "TSV without a header", "3"),
    Kind("mixed.txt", b"Gr\xc3\xb6\xc3\x9fe\nGr\xf6\xdfe\n", "plain text", "", 1, {"kept": 1}),
    Kind("table.txt", table(TEXT_ROWS, "\t"), "plain text", "", 1, remark="looks like a table (TSV: id, text)"),
    Kind("table.txt", table(TEXT_ROWS, "\t"), "TSV", options={"text_column": "text"}),
    Kind("notes.md", b"[a list](of links)\n{not: json}\n", "plain text", "", 1),
    Kind("alpaca_rendered.jsonl", lines([{**row,
         "text": f"### {row['instruction']}\n{row['output']}"} for row in ALPACA]),
         "JSON Lines"),
    Kind("alpaca.json", whole(ALPACA), "a JSON array", "output", options={"text_column": "output"}),
    Kind("lists.jsonl", lines(named(text=[[t, "More."] for t in TEXTS], url=["http://x.example/y"] * ROWS)),
         "JSON Lines",
         options={"text_column": "text"}),
    Kind("chat.jsonl", lines(CHATS), "plain text", "", 1, options={"text_column": "*"}, remark="names and brackets"),
    Kind("by_id.json", whole({f"page {n}": text for n, text in enumerate(TEXTS)}), "a JSON object of rows", "value"),
    Kind("answer.json", whole({"took": 1, "_shards": {"total": 1}, "hits": {"total": {"value": ROWS},
         "hits": [{"_id": str(n), "_source": {"body": t}} for n, t in enumerate(TEXTS)]}}),
         "a JSON array below “hits.hits”", "_source.body"),
    Kind("coco.json", whole({"info": {"year": 2014}, "images": [{"id": n, "file_name": "a.jpg"} for n in range(9)],
         "annotations": [{"image_id": n, "caption": t} for n, t in enumerate(TEXTS)]}),
         "JSON, column by column", "caption"),
    Kind("bulk.json", lines([row for n, t in enumerate(TEXTS) for row in ({"index": {"_id": n}}, {"text": t})]),
         "JSON Lines"),
    Kind("apart.jsonl", lines(TEXT_ROWS).replace(b"\n", b"\n\n\n"), "JSON Lines"),
    Kind("indented.txt", "".join(f"\t{t}\n" for t in TEXTS).encode(), "plain text", "", 1),
    Kind("bytes.csv", table(named(text=[repr(t.encode()) for t in TEXTS])), "CSV with one column",
         remark="bytes as Python prints them"),
    Kind("hex.csv", table(named(text=[rf"She\xe2\x80\x99s here. {t}" for t in TEXTS])), "CSV with one column",
         remark="line ends and other characters spelled out"),
    Kind("last_comma.json", b"[" + b"".join(whole(row) + b",\n" for row in TEXT_ROWS) + b"]", "a JSON array"),
    Kind("v1.csv", b"v1,v2,,\n" + "".join(f'ham,"{t}",,\n' for t in TEXTS).encode(), "CSV", "v2"),
    Kind("x1.csv", table(named(x1=range(ROWS), x2=TEXTS)), "CSV", "x2"),
    Kind("cola.tsv", "".join(f"gj04\t1\t\t{t}\n" for t in TEXTS).encode(), "TSV without a header", "4"),
    Kind("spelled.csv", table(named(review=[rf"{t}\n\nMore, and more of it." for t in TEXTS])),
         "CSV with one column", "review", remark="line ends and other characters spelled out, such as \\n"),
    Kind("country.csv", table(named(text=TEXTS, code=["DE"] * ROWS)), "CSV"),
]  # fmt: skip


def office_document() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
    return file.getvalue()


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12\n"
BINARY: dict[str, bytes] = {
    "book.xlsx": office_document(), "renamed.csv": office_document(), "data.zip": b"PK\x03\x04" + b"a" * 40 + b"\0",
    "notepad.txt": "Some words.\r\n".encode("utf-16"), "bare.csv": "id,text\r\n".encode("utf-16-le"),
    "big.jsonl": '{"text": "Words"}\n'.encode("utf-16-be"), "packed.jsonl": gzip.compress(lines(TEXT_ROWS)),
    "rows.csv.bz2": b"BZh91AY&SY", "rows.csv.xz": b"\xfd7zXZ\0", "texts.tar": b"a.txt".ljust(257, b"\0") + b"ustar",
    "words.db": b"SQLite format 3\0", "paper.pdf": b"%PDF-1.7\nBT (Words) Tj ET\n", "letter.rtf": b"{\\rtf1 Words.}",
    "old.doc": b"\xd0\xcf\x11\xe0\xa1\xb1\0", "letter.odt": b"PK\x03\x04" + b"a" * 26 + b"mimetypeapplication",
    "zeros.txt": b"Words.\0More words.\n", "table.txt": b"PAR1\x15\0",
}  # fmt: skip

REFUSED: list[tuple[str, bytes, str]] = [
    ("chatlines.json", lines(CHATS), "The rows are conversations"),
    ("openai.jsonl", lines(CHATS), "The rows are conversations"),
    ("one_chat.json", whole(CHATS[0], 1), "The rows are conversations"),
    ("messages.jsonl", lines(named(role=["user", "assistant"] * 20, content=TEXTS)),
     "The rows are messages of conversations"),
    ("oasst.jsonl", lines(named(role=["prompter", "assistant"] * 20, text=TEXTS)),
     "The rows are messages of conversations"),
    ("preamble.csv", b"Exported by Tool\n\n" + table(TEXT_ROWS), "The table has lines above it"),
    ("titled.csv", b"Export,,\n,,\n" + table(named(id=range(ROWS), text=TEXTS, n=range(ROWS))),
     "The table has lines above it"),
    ("denied.csv", b'<?xml version="1.0"?>\n<Error><Code>Denied</Code></Error>\n',
     "The file is a page in place of data"),
    ("denied.jsonl", b'{"error": "Access to this dataset is restricted to some people."}\n',
     "Which column is the text?"),
    ("page.parquet", b"<!DOCTYPE html>\n<html></html>\n", "The dataset is not a table"),
    ("lines.arrow", lines(TEXT_ROWS), "The dataset is not a table"),
    ("arrow.parquet", b"ARROW1\0\0", "The dataset is not a table"),
    ("spider.jsonl", lines(named(question=QUESTIONS, query=["SELECT a FROM b"] * ROWS)),
     "The rows are questions and answers"),
    ("ragged.csv", b"id,text\n" + b"".join(f"{n},{t}\n".encode() for n, t in enumerate(TEXTS)),
     "Too many rows are bad"),
    ("values.json", whole([[n, t] for n, t in enumerate(TEXTS)]), "Too many rows are bad"),
    ("topic.jsonl", lines(named(topic=TEXTS, dialog=[["Yes.", "No."]] * ROWS)), "The rows are conversations"),
    ("pairs.jsonl", lines([{"conversation": [{"input": t, "output": "Yes."}]} for t in TEXTS]),
     "The rows are conversations"),
    ("human_ai.csv", table(named(Human=QUESTIONS, AI=TEXTS)), "The rows are inputs with outputs"),
    ("languages.csv", table(named(english_text=TEXTS, german_text=TEXTS)), "The rows are translations"),
    ("sharegpt.json", whole(SHAREGPT), "The rows are conversations"),
    ("chat.csv", table([{"id": n, "conversation": json.dumps(row["messages"])} for n, row in enumerate(CHATS)]),
     "The rows are conversations"),
    ("conversations.json", whole(EXPORT), "The rows are conversations"),
    ("alpaca.json", whole(ALPACA), "The rows are instructions with responses"),
    ("qa.csv", table(named(question=QUESTIONS, answer=["four", "nine"] * 20)), "The rows are questions and answers"),
    ("numbers.jsonl", lines(named(question=QUESTIONS, answer=range(ROWS))), "The rows are questions and answers"),
    ("squad.jsonl", lines(SQUAD), "The rows are questions and answers"),
    ("squad.json", whole({"version": "1.1", "data": [{"title": "A b", "paragraphs": [{"context": TEXTS[0],
     "qas": []}]}]}),
     "The rows are questions and answers"),
    ("dpo.jsonl", lines(named(prompt=QUESTIONS, chosen=TEXTS, rejected=TEXTS)), "The rows are preferences"),
    ("dpo_chat.jsonl", lines(named(chosen=[c["messages"] for c in CHATS], rejected=[c["messages"] for c in CHATS])),
     "The rows are preferences"),
    ("kto.jsonl", lines(named(prompt=QUESTIONS, completion=TEXTS, label=[True, False] * 20)),
     "The rows are prompts with rated completions"),
    ("completion.jsonl", lines(named(prompt=QUESTIONS, completion=TEXTS)), "The rows are prompts with completions"),
    ("io.jsonl", lines(named(input=QUESTIONS, output=TEXTS)), "The rows are inputs with outputs"),
    ("context.csv", table(named(Context=QUESTIONS, Response=TEXTS)), "The rows are inputs with outputs"),
    ("translation.jsonl", lines([{"translation": {"de": t, "en": t}} for t in TEXTS]), "The rows are translations"),
    ("opus.tsv", table(named(en=TEXTS, de=TEXTS), "\t"), "The rows are translations"),
    ("xsum.jsonl", lines(named(document=TEXTS, summary=QUESTIONS, id=range(ROWS))),
     "The rows are texts with summaries"),
    ("nli.jsonl", lines(named(premise=TEXTS, hypothesis=QUESTIONS, label=[0, 1] * 20)), "The rows are pairs of texts"),
    ("ids.jsonl", lines([{"input_ids": [1, 2, n], "attention_mask": [1, 1, 1]} for n in range(ROWS)]),
     "The rows are token ids"),
    ("lists.jsonl", lines(named(text=[[t] for t in TEXTS], url=["http://x.example/y"] * ROWS)),
     "The rows are lists of texts"),
    ("conll.jsonl", lines(named(tokens=[["A", "b"]] * ROWS, ner_tags=[[0, 1]] * ROWS)), "The rows are lists of texts"),
    ("names.csv", table(named(name=["Ann Bell"] * ROWS, url=["http://x.example/y"] * ROWS, born=["2001-02-03"] * ROWS)),
     "Which column is the text?"),
    ("prices.csv", table(named(day=range(ROWS), price=["2.5"] * ROWS)), "Which column is the text?"),
    ("two_columns.csv", table(named(before=TEXTS, after=TEXTS)), "Which column is the text?"),
    ("same_name.csv", b"text,text\n" + b"".join(f'"{t}","{t}"\n'.encode() for t in TEXTS), "Which column is the text?"),
    ("settings.json", b'{"lr": 0.1, "name": "a"}', "The data has no rows"),
    ("only_header.csv", b"id,text\n", "The dataset is empty"),
    ("empty.csv", b"", "The dataset is empty"),
    *((name, data, "The dataset is not text") for name, data in BINARY.items()),
    *((f"pointer.{ending}", POINTER, "The file is a Git LFS pointer")
      for ending in ("parquet", "arrow", "jsonl", "jsonl.gz", "csv.zst", "json", "csv", "txt", "md", "")),
    ("solutions.jsonl", lines(named(prompt=QUESTIONS, canonical_solution=TEXTS)),
     "The rows are prompts with completions"),
    ("telegram.json", whole({"name": "Ann", "messages": [{"id": 1, "from": "Ann", "text": t} for t in TEXTS]}),
     "The rows are conversations"),
    ("claude.json", whole([{"name": "Chat", "chat_messages": [{"text": t, "sender": "human"}]} for t in TEXTS]),
     "Which column is the text?"),
    ("news.csv", "".join(f'"3","Some short title {n}","{t}"\n' for n, t in enumerate(TEXTS)).encode(),
     "Which column is the text?"),
    ("parallel.tsv", "".join(f"{t}\t{q}\n" for t, q in zip(TEXTS, QUESTIONS, strict=True)).encode(),
     "Which column is the text?"),
    ("places.geojson", whole({"type": "A", "features": [{"type": "Feature", "properties": {"name": "A b"}}]}),
     "Which column is the text?"),
    ("sequence.jsonl", b"".join(b"\x1e" + whole(row) + b"\n" for row in TEXT_ROWS), "Too many rows are bad"),
    ("page.jsonl", b"<!DOCTYPE html><html>404</html>\n", "The file is a page in place of data"),
    ("error.json", whole({"error": "Invalid API key, please check it.", "code": 401}), "The data has no rows"),
    ("zeros.csv.gz", gzip.compress(table(TEXT_ROWS).decode().encode("utf-16")), "The dataset is not text"),
    ("utf16.csv", table(TEXT_ROWS).decode().encode("utf-16"), "The dataset is not text"),
    ("latin.csv", b"text\n" + "Größe und mehr Wörter\n".encode("latin-1") * 40, "Too many rows are bad"),
    ("not_json.jsonl", b"{'text': 'Python writes it so'}\n" * 40, "Too many rows are bad"),
    ("trees.jsonl", lines([{"prompt": {"text": t, "role": "prompter", "replies": [{"text": "Yes.", "role": "bot"}]}}
     for t in TEXTS]), "The rows are conversations"),
    ("batch.jsonl", lines([{"custom_id": "a", "body": {"model": "b", **row}} for row in CHATS]),
     "The rows are conversations"),
    ("dialogues.json", whole([{"turns": [{"speaker": "USER", "utterance": t}]} for t in TEXTS]),
     "The rows are conversations"),
    ("topical.json", whole({f"t{n}": {"config": "A", "content": [{"message": t, "agent": "agent_1"}]}
     for n, t in enumerate(TEXTS)}), "The rows are conversations"),
    ("stem.jsonl", lines(named(question_stem=QUESTIONS, choices=[{"text": ["a", "b"]}] * ROWS)),
     "The rows are questions and answers"),
    ("options.jsonl", lines(named(question=QUESTIONS, opa=["a b"] * ROWS, exp=[t * 9 for t in TEXTS])),
     "The rows are questions or prompts with other texts"),
    ("eli5.jsonl", lines(named(title=QUESTIONS, selftext=[""] * ROWS, answers=[{"text": [t]} for t in TEXTS])),
     "The rows are questions and answers"),
    ("pages.jsonl", lines([{"question": {"text": q}, "document": {"tokens": ["a"]}} for q in QUESTIONS]),
     "The rows are questions and answers"),
    ("stories.jsonl", lines(named(prompt=QUESTIONS, story=[t * 9 for t in TEXTS])),
     "The rows are questions or prompts with other texts"),
    ("goals.jsonl", lines(named(goal=QUESTIONS, sol1=TEXTS, sol2=[t * 9 for t in TEXTS])),
     "The rows are pairs of texts"),
    ("gaps.jsonl", lines(named(sentence=TEXTS, option1=["Ann"] * ROWS, option2=["Bob"] * ROWS)),
     "The rows are pairs of texts"),
    ("mbpp.jsonl", lines(named(text=QUESTIONS, code=[f"def f(a):\n    return a + 1 + {n}\n" for n in range(ROWS)])),
     "The rows are texts with code"),
    ("refs.jsonl", lines(named(history=[t * 9 for t in TEXTS], human_ref_A=TEXTS, human_ref_B=QUESTIONS)),
     "The rows are preferences"),
    ("rated.jsonl", lines(named(instruction=QUESTIONS, chosen_response=TEXTS, rejected_response=TEXTS)),
     "The rows are preferences"),
    ("lines_in_quotes.csv", b'"id,text"\n' + b"".join(b'"1,""%s"""\n' % t.encode() for t in TEXTS),
     "The table's columns cannot be told apart"),
    ("single_quotes.csv", b"'id','text'\n" + b"".join(b"'1','%s'\n" % t.encode() for t in TEXTS),
     "The table's columns cannot be told apart"),
]  # fmt: skip


def read(path: Path, options: Mapping[str, Any]) -> tuple[Any, list[bytes], RowCounts]:
    """What is found in a file, its documents, and the counts that the default limit lets through."""
    corpus, counts = open_corpus(str(path), options), RowCounts()
    pieces = list(corpus.pieces(counts))
    BadRowLimit.parse("5%").check(counts)
    return corpus, [piece.data for piece in pieces if piece.data], counts


@pytest.mark.parametrize("kind", READ, ids=[f"{number}-{kind.name}" for number, kind in enumerate(READ)])
def test_a_file_is_read_as_what_it_holds(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / kind.name).write_bytes(kind.data)
    corpus, texts, counts = read(tmp_path / kind.name, kind.options or {})
    assert (corpus.form, corpus.column) == (kind.form, kind.column)
    assert (counts.documents, dict(counts.bad)) == (kind.documents, kind.bad or {})
    said = " ".join((*corpus.remarks, counts.repeated))
    assert kind.remark in said and bool(said) >= bool(kind.remark)
    if counts.documents == ROWS and kind.column == "text" and kind.name not in ("essays.csv", "labels.csv"):
        assert TEXTS[-1].encode() in texts[-1]
    assert not texts[0].startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize(
    "text",
    [
        "Ann: Some words.\nBob: From here to there.\n",
        "---\nSome words below a rule.\n\n---\nMore words.\n",
        "<unk> words are <unk> here\n",
        "# A heading\n\n- some words, with a [link](https://x.example/y)\n- `code` and **more** words\n",
        "北京的夏天很热。\n公园里有很多人。\n",
        "“Some words,” said Ann.\n“More,” said Bob.\n",
        "ANN: Some words, and more of them.\nBOB: Yes.\n",
        "So long as men can breathe;\nOr eyes can see,\nSo long lives this;\nAnd this gives life\n",
        "From here to there they walked\nwith nothing in their hands\nwhere others rode\nif they could.\n",
        "Select a place.\nWith a friend, read on.\nFrom Paris we went home.\nWhere is Ann?\n",
        "SCENE I. A room.\nWITH trumpets they enter\nFor ever and a day.\nTry again (they said).\n",
        "There was an error: the TypeError of old.\nHe sat at home (alone).\nBob slept.\n",
    ],
)
def test_prose_gets_no_note_on_what_is_besides_words(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert read(tmp_path / "a.txt", {})[0].remarks == ()


def test_a_header_repeated_among_the_rows_is_told(tmp_path: Path) -> None:
    (tmp_path / "joined.csv").write_bytes(2 * table(TEXT_ROWS))
    corpus, texts, counts = read(tmp_path / "joined.csv", {})
    assert (corpus.column, counts.documents, len(texts)) == ("text", 2 * ROWS + 1, 2 * ROWS + 1)
    said = "One row repeats the table's header, which is trained too"
    assert said in corpus.report(counts, 1) and said in RowCounts.from_dict(counts.as_dict()).repeated


def test_texts_in_a_parquet_list_are_not_guessed(tmp_path: Path) -> None:
    rows = named(text=[[t, "More."] for t in TEXTS], url=["https://x.example/a"] * ROWS)
    write_parquet(tmp_path / "a.parquet", rows)
    with pytest.raises(RankdeckError, match="lists of texts"):
        read(tmp_path / "a.parquet", {})
    _, texts, _ = read(tmp_path / "a.parquet", {"text_column": "text"})
    assert texts[3].decode() == f"{TEXTS[3]}\nMore."


def test_texts_in_parquet_may_be_bytes(tmp_path: Path) -> None:
    images = [{"bytes": b"\x89PNG\0", "path": "a.png"}] * ROWS
    write_parquet(tmp_path / "a.parquet", named(text=[t.encode() for t in TEXTS], image=images))
    corpus, texts, _ = read(tmp_path / "a.parquet", {})
    assert (corpus.column, corpus.remarks, texts[3].decode()) == ("text", (), TEXTS[3])


def test_rows_of_a_parquet_file_as_they_stand_are_json(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", CHATS)
    with pytest.raises(RankdeckError, match="conversations") as caught:
        read(tmp_path / "a.parquet", {})
    assert "choose * as the text column" in caught.value.next_step
    corpus, texts, counts = read(tmp_path / "a.parquet", {"text_column": "*"})
    assert (json.loads(texts[3]), counts.documents) == (CHATS[3], ROWS)
    assert corpus.remarks == ("Each row of a table is read as JSON, with all names and brackets.",)


def test_unused_columns_are_named_within_an_object_too(tmp_path: Path) -> None:
    rows = [{"n": n, "node": {"title": "A b", "body": text}} for n, text in enumerate(TEXTS)]
    (tmp_path / "nodes.jsonl").write_bytes(lines(rows))
    corpus = read(tmp_path / "nodes.jsonl", {})[0]
    assert corpus.text == "JSON Lines, text column node.body (guessed; not used: n, node.title)"


def test_a_column_with_a_stop_in_its_name_is_not_named_as_unused(tmp_path: Path) -> None:
    (tmp_path / "form.csv").write_bytes(table(named(n=range(ROWS), **{"Why? Please say it.": TEXTS})))
    assert read(tmp_path / "form.csv", {})[0].text == "CSV, text column Why? Please say it. (guessed; not used: n)"


def save_to_disk(folder: Path, rows: list[dict[str, object]], shards: int = 2) -> None:
    """A folder as `datasets.Dataset.save_to_disk` writes it, with a file that `map` has left there."""
    pyarrow = pytest.importorskip("pyarrow", reason="Arrow needs the pyarrow package")
    folder.mkdir(parents=True)
    names = [f"data-{number:05}-of-{shards:05}.arrow" for number in range(shards)]
    for number, name in enumerate([*names, "cache-0123456789abcdef.arrow"]):
        part = pyarrow.Table.from_pylist(rows[number::shards] or rows[:1])
        with pyarrow.OSFile(str(folder / name), "wb") as file, pyarrow.ipc.new_stream(file, part.schema) as writer:
            writer.write_table(part)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "a", "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
    (folder / "dataset_info.json").write_text('{"description": "A set of words.", "features": {}}', encoding="utf-8")


def test_a_folder_saved_by_datasets_is_its_rows(tmp_path: Path) -> None:
    save_to_disk(tmp_path / "saved", TEXT_ROWS)
    corpus, texts, counts = read(tmp_path / "saved", {})
    assert (corpus.form, corpus.column, counts.documents) == ("Arrow", "text", ROWS)
    assert sorted(texts) == sorted(text.encode() for text in TEXTS)
    (tmp_path / "saved" / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(RankdeckError, match=r"data-00001-of-00002\.arrow, which is missing"):
        read(tmp_path / "saved", {})


def test_a_feather_file_is_its_rows(tmp_path: Path) -> None:
    feather = pytest.importorskip("pyarrow.feather", reason="Feather needs the pyarrow package")
    import pyarrow

    feather.write_feather(pyarrow.Table.from_pylist(TEXT_ROWS), str(tmp_path / "a.feather"))
    assert read(tmp_path / "a.feather", {})[2].documents == ROWS


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(lines(TEXT_ROWS))
    (tmp_path / "prices.csv").write_bytes(table(named(day=range(9), price=range(9))))
    (tmp_path / "notes.txt").write_bytes(b"\xef\xbb\xbfWords.\n")
    (tmp_path / "settings.json").write_bytes(b'{"lr": 0.1}')
    corpus, texts, counts = read(tmp_path, {})
    assert (corpus.column, counts.documents, not counts.bad) == ("text", ROWS + 2, True)
    assert texts[0] == b"Words.\n"
    assert corpus.remarks == (
        "prices.csv is left out: none of its columns looks like text.",
        "Read as plain text, with everything that stands in it: JSON without rows (settings.json).",
    )
    (tmp_path / "chat.jsonl").write_bytes(lines(CHATS))
    with pytest.raises(RankdeckError, match=r"chat\.jsonl holds conversations"):
        read(tmp_path, {})


def test_plain_text_keeps_its_digest(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"A text.\n")
    digest = open_corpus(str(tmp_path / "a.txt"), {}).digest
    assert digest == "31235f2ee9eb6f5ad8850c415efce603afcc8fe439ef4a0af6ff41d4957b8924"  # that of 0.1's first runs


@pytest.mark.parametrize(("name", "data", "title"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_file_is_refused_by_name(tmp_path: Path, name: str, data: bytes, title: str) -> None:
    if title == "The dataset is not a table":
        pytest.importorskip("pyarrow", reason="tables need the pyarrow package")
    (tmp_path / name).write_bytes(data)
    with pytest.raises(RankdeckError) as caught:
        read(tmp_path / name, {})
    assert (caught.value.title, caught.value.exit_code) == (title, 2)
    assert caught.value.next_step
