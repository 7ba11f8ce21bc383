"""Files that others may hold: opened, read and renamed through `core.held_files`, or listed here with a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
CODE: Final = ("app", "core", "workers")
HOME: Final = ("core/held_files.py", "core/files/links.py")
READS: Final = frozenset(("read_text", "read_bytes"))
CALLS: Final = frozenset((*READS, "open", "rename", "replace"))

OTHERS: Final = {
    # Linux, whose files are never refused
    "core/machine/devices/cpu.py": "/proc",
    "core/processes/launcher.py": "/proc",
    "core/processes/marks.py": "/proc",
    "workers/host_link/peak_memory.py": "/proc",
    # Files that came with Rankdeck and are never written
    "app/preferences/documentation.py": "docs",
    "app/style/icons.py": "icons",
    "core/launch/deepspeed.py": "resources",
    # What the person chose, where a refusal is told at once
    "core/config/layers.py": "a configuration for DeepSpeed",
    "core/machine/interpreters.py": "other programs' environments: one that cannot be read is left out",
    "core/cli/entry.py": "the log of a failure",
    # New files, which no other program knows yet
    "core/export/export.py": "a new table",
    "core/files/atomic.py": "in `retried`",
    "core/run_folder/early_host.py": "an order, written once",
    "workers/state_files/safetensors_files.py": "new weights",
    "workers/data/tokens/token_cache.py": "a folder that is mapped stays, and is not waited for",
    # Sent to a machine that has nothing of ours yet
    "core/machines/agent.py": "the standard library alone",
    # A recipe uses the standard library alone; the SDK runs in the person's Python, and has retries of its own
    "workers/recipes/": "",
    "workers/sdk/": "",
    "workers/data/model_tokenizer.py": "the Hub's cache: a refusal leads to a download",
}


def risky(tree: ast.AST) -> Iterator[int]:
    """Lines that open, read or rename a file without `core.held_files`; a call inside its `retried` is not one."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS):
            continue
        if _is_file_call(node, node.func) and not _is_retried(node, parents):
            yield node.lineno


def _is_file_call(node: ast.Call, function: ast.Attribute) -> bool:
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    first = node.args[0] if node.args else None
    match function.attr:
        case "open":  # with a mode; `store.open(path)` and `dialog.open()` are other things
            return isinstance(first, ast.Constant) and isinstance(first.value, str)
        case "replace":  # of a path: text takes two arguments, a dataclass names, and a time both
            return owner == "os" or (len(node.args) == 1 and not node.keywords)
        case "rename":
            return len(node.args) == 1 or owner == "os"
    return True


def _is_retried(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    while node in parents:
        node = parents[node]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "retried":
            return True
    return False


def test_files_are_opened_with_patience() -> None:
    found, needed = [], set()
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            lines = list(risky(ast.parse(path.read_text(encoding="utf-8"))))
            listed = next((other for other in OTHERS if name.startswith(other)), None)
            if lines and listed is not None:
                needed.add(listed)
            elif lines and name not in HOME:
                found += [f"{name}:{line}" for line in lines]
    assert found == [], "use core.held_files, or list the file with a reason"
    assert needed == set(OTHERS), "these need no exception any more"
