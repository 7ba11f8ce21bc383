"""Term check: retired words stay out of messages, docs, docstrings, comments and identifiers.

`RETIRED` is the list, and `ALLOWED` the files that must use one of them, with the reason. `python -m tests.test_terms
app/window` prints each use in a folder.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CODE = ("app", "core", "workers", "installer")
PAGES = ("*.md", "docs/**/*.md")

PROSE = frozenset({"message", "docs", "docstring", "comment"})
WINDOW = frozenset({"window"})
NAMES = frozenset({"name"})
MODULES = frozenset({"module"})


class Retired(NamedTuple):
    """A word or phrase to avoid.

    Attributes:
        pattern: A regular expression, matched between word borders in any case.
        instead: What to write.
        where: The texts it is retired from.
    """

    pattern: str
    instead: str
    where: frozenset[str] = PROSE


class Use(NamedTuple):
    """A retired word that is still in use."""

    file: str
    line: int
    found: str
    instead: str


RETIRED = (
    Retired(r"(?<!Ada )generations?(?! token| code)", "checkpoint", PROSE | NAMES),
    Retired(r"nobody|somebody|whosever|whoever", "name the process, the file or the user"),
    Retired(r"goes on|go on with|went on", "continue, resume"),
    Retired(r"is not going", "isn't running"),
    Retired(r"anew", "again, from the beginning"),
    Retired(r"so many|so often|so long as|for so long", "the figure, or: up to N"),
    Retired(r"worth knowing", "notes"),
    Retired(r"before (its|their) time", "unexpectedly"),
    Retired(r"(is|are) no kinds? of", "unsupported"),
    Retired(r"(?<!there )is no (?!longer|more)\w+", "is not a"),
    Retired(r"brought together|brings? (\w+ ){0,3}together", "synchronise"),
    Retired(r"cpu slots?", "CPU device"),
    Retired(r"evidence", "plots, run tabs"),
    Retired(r"carry-overs?|carried over", "restore plan"),
    Retired(r"share-outs?", "load balancing, batch shares"),
    Retired(r"rehears(e|es|ed|al|als|ing)", "warm-up"),
    Retired(r"lanes?", "replica group"),
    Retired(r"dials?", "sync interval"),
    Retired(r"in words", "as text"),
    Retired(r"as (it was )?asked", "as requested, unchanged"),
    Retired(r"ledgers?|blocks?|chunks?", "data progress", WINDOW),
    Retired(r"ranks?", "the device's name", WINDOW),
    Retired(r"--[a-z][a-z-]+", "the field's label", WINDOW),
    Retired(r"words|said|told|rehearsal|evidence|survey|standing|surroundings", "a noun of the field", NAMES),
    Retired(r"dial|lanes?|rescue|silence|situation|verbs", "the term of the glossary", NAMES),
    Retired(r"\A(What|Which|How|Where|When)", "the term first, then the reason", MODULES),
)
_OLD_NAME = "the old name, which is still read in files of early versions of 0.1"
_LEDGER_KEY = "a key of the ledger's file, which keeps its name"
# (file, word) to the reason why it stays there.
ALLOWED: Final[Mapping[tuple[str, str], str]] = {
    ("CHANGELOG.md", "generations"): _OLD_NAME,
    ("core/ledger/state_file.py", "generation"): _OLD_NAME,
    ("core/protocol/messages.py", "generation"): _OLD_NAME,
    ("core/run_folder/state.py", "generation"): _OLD_NAME,
    ("docs/files.md", "generation"): _OLD_NAME,
    ("docs/files.md", "generations"): _OLD_NAME,
    ("docs/resume-and-ledger.md", "lanes"): _LEDGER_KEY,
}
RULES = [(rule, re.compile(rf"(?<![\w-])(?:{rule.pattern})(?!\w)", re.IGNORECASE)) for rule in RETIRED]
PART_OF_A_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def docstrings(tree: ast.Module) -> Iterator[tuple[bool, ast.Constant]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield isinstance(node, ast.Module), first.value


def new_name(node: ast.AST) -> str:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""


def texts_of_code(source: str, *, of_window: bool) -> Iterator[tuple[str, int, str]]:
    """(kind, line, text) of each docstring, message, new name and comment of a module."""
    tree = ast.parse(source)
    documented = set()
    for of_module, docstring in docstrings(tree):
        documented.add(id(docstring))
        yield "docstring", docstring.lineno, str(docstring.value)
        if of_module:
            yield "module", docstring.lineno, str(docstring.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            if " " in node.value.strip():  # a single word is a key or a value, not a sentence
                yield "message", node.lineno, node.value
                if of_window:
                    yield "window", node.lineno, node.value
        elif name := new_name(node):
            yield "name", getattr(node, "lineno", 0), " ".join(PART_OF_A_NAME.findall(name))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield "comment", token.start[0], token.string


def texts() -> Iterator[tuple[str, str, int, str]]:
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            file = path.relative_to(ROOT).as_posix()
            for kind, line, text in texts_of_code(path.read_text(encoding="utf-8"), of_window=folder == "app"):
                yield file, kind, line, text
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                yield path.relative_to(ROOT).as_posix(), "docs", line, text


@cache
def uses() -> tuple[Use, ...]:
    return tuple(
        Use(file, line + (0 if kind == "name" else text.count("\n", 0, found.start())), found.group(), rule.instead)
        for file, kind, line, text in texts()
        for rule, pattern in RULES
        if kind in rule.where
        for found in pattern.finditer(text)
    )


def unwanted() -> list[str]:
    """A line for each retired word that is not allowed where it is."""
    return [
        f"{use.file}:{use.line}: {use.found!r}; say: {use.instead}"
        for use in uses()
        if (use.file, use.found.lower()) not in ALLOWED
    ]


def test_retired_words_stay_out() -> None:
    assert unwanted() == [], "a retired word came in; the list and the reasons are in tests/test_terms.py"


def test_each_allowed_place_is_needed() -> None:
    assert ALLOWED.keys() <= {(use.file, use.found.lower()) for use in uses()}


def test_each_kind_of_text_is_seen() -> None:
    source = '"""How it is."""\n\n\ndef said(so):\n    """Nobody."""\n    return f"{so} anew, it goes on"  # a lane\n'
    kinds = {kind for kind, _, text in texts_of_code(source, of_window=True) if text}
    assert kinds == {"module", "docstring", "name", "message", "window", "comment"}


if __name__ == "__main__":
    left = [line for line in unwanted() if line.startswith(tuple(sys.argv[1:] or [""]))]
    print(*left, f"{len(left)} retired words", sep="\n")
