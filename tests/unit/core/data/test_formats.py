"""What a data file's name says of its content."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from core.data.formats import FileFormat, format_for, is_data_name, missing_package


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jsonl", FileFormat("jsonl")),
        ("A.NDJSON.GZ", FileFormat("jsonl", "gz")),
        ("a.json.zst", FileFormat("json", "zst")),
        ("a.b.tsv", FileFormat("tsv")),
        ("a.parquet", FileFormat("parquet")),
        ("a.txt.gz", FileFormat("text", "gz", is_open=True)),
        ("a.xyz", FileFormat("text", is_open=True)),
        ("csv", FileFormat("csv")),
        ("gz", FileFormat("text", is_open=True)),
        (".gz", FileFormat("text", is_open=True)),
        ("a.csv.gz.zst", FileFormat("text", "zst", is_open=True)),
        ("", FileFormat("text", is_open=True)),
    ],
)
def test_the_ending_names_form_and_packing(name: str, expected: FileFormat) -> None:
    assert format_for(name) == expected


@pytest.mark.parametrize(
    ("form", "plain", "readable", "rows"),
    [
        (FileFormat("text"), True, True, False),
        (FileFormat("text", "gz"), False, False, False),
        (FileFormat("csv"), False, True, True),
        (FileFormat("csv", "zst"), False, False, True),
        (FileFormat("parquet"), False, False, True),
        (FileFormat("arrow"), False, False, True),
    ],
)
def test_what_a_format_means(form: FileFormat, plain: bool, readable: bool, rows: bool) -> None:
    assert (form.is_plain_text, form.is_readable_text, form.has_rows) == (plain, readable, rows)


@pytest.mark.parametrize(
    ("name", "belongs"),
    [
        ("a.txt", True),
        ("README.MD", True),
        ("train.jsonl.gz", True),
        ("train.py", True),
        ("a.parquet", True),
        ("a.PARQUET", True),
        ("a.parquet.gz", False),
        (".hidden.txt", False),
        (".txt", False),
        ("photo.jpg", False),
        ("LICENSE", False),
        ("a.zst", False),
        ("model.safetensors", False),
    ],
)
def test_which_files_of_a_folder_are_data(name: str, belongs: bool) -> None:
    assert is_data_name(name) is belongs


@pytest.mark.parametrize(
    ("form", "there", "python", "missing"),
    [
        (FileFormat("parquet"), False, (3, 14), "pyarrow"),
        (FileFormat("arrow"), False, (3, 11), "pyarrow"),
        (FileFormat("parquet"), True, (3, 11), ""),
        (FileFormat("csv", "zst"), False, (3, 13), "pyarrow"),
        (FileFormat("csv", "zst"), True, (3, 13), ""),
        (FileFormat("csv", "zst"), False, (3, 14), ""),
        (FileFormat("csv", "gz"), False, (3, 11), ""),
    ],
)
def test_the_package_that_a_format_needs(
    form: FileFormat, there: bool, python: tuple[int, int], missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object() if there else None)
    monkeypatch.setattr(sys, "version_info", python)
    assert missing_package(form) == missing
