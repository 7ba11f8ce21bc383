"""Programs that Rankdeck starts: none may open a console window, and what they print is never in a code page."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
CODE: Final = ("app", "core", "workers")  # the installer runs in a terminal, whose console its programs share
STARTERS: Final = frozenset(("Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"))
OTHER_STARTERS: Final = frozenset(("system", "popen", "spawnl", "spawnv", "spawnve", "create_subprocess_exec"))
WINDOW_FLAGS: Final = frozenset(("CREATE_NO_WINDOW", "DETACHED_PROCESS", "CREATE_NEW_CONSOLE"))
# How many calls of each file need no flag.
NOT_ON_WINDOWS: Final = {
    "core/processes/posix.py": 2,
    "core/processes/detached.py": 1,  # in the branch for POSIX
    "core/machines/agent.py": 2,  # below sshd, which has no desktop to show a window on
    "core/machine/keep_awake.py": 1,  # systemd-inhibit
    "workers/script/store.py": 2,  # Linux alone hosts the store
}


def calls_without_flag(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        starts = (owner == "subprocess" and node.func.attr in STARTERS) or (
            owner in ("os", "asyncio") and node.func.attr in OTHER_STARTERS
        )
        flags = next((keyword.value for keyword in node.keywords if keyword.arg == "creationflags"), None)
        # `flags` is what `_popen` in core.processes.detached is handed.
        names = {part.id for part in ast.walk(flags) if isinstance(part, ast.Name)} if flags is not None else set()
        if starts and not names & {"NO_WINDOW", "flags"}:
            yield node


def sources(*words: str) -> Iterator[tuple[str, ast.AST]]:
    """Path and syntax tree of each module in whose text one of the words stands: to parse all takes seconds."""
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if any(word in text for word in words):
                yield path.relative_to(ROOT).as_posix(), ast.parse(text)


def test_no_program_opens_a_console_window() -> None:
    found = {name: len(list(calls_without_flag(tree))) for name, tree in sources("subprocess", *OTHER_STARTERS)}
    assert {name: count for name, count in found.items() if count} == NOT_ON_WINDOWS, "pass creationflags=NO_WINDOW"


def test_one_module_knows_the_flag() -> None:
    found = set()
    for name, tree in sources(*WINDOW_FLAGS):
        for node in ast.walk(tree):
            if (isinstance(node, ast.Attribute) and node.attr in WINDOW_FLAGS) or (
                isinstance(node, ast.Constant) and node.value in WINDOW_FLAGS
            ):
                found.add(name)
    assert found == {"core/program_search.py"}, "use core.program_search.NO_WINDOW"


def test_programs_derived_from_popen_are_known() -> None:
    """A user's script shares its rank's hidden console: that is how it hears Ctrl+C."""
    found = [
        name
        for name, tree in sources("Popen")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any("Popen" in ast.unparse(base) for base in node.bases)
    ]
    assert found == ["workers/script/child.py"]


def test_what_programs_print_is_read_in_a_named_encoding() -> None:
    """`text=True` alone reads in Windows' code page."""
    found = [
        f"{name}:{node.lineno}"
        for name, tree in sources("text=", "universal_newlines=")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and any(keyword.arg in ("text", "universal_newlines") for keyword in node.keywords)
        and not any(keyword.arg == "encoding" for keyword in node.keywords)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in STARTERS
    ]
    assert found == []
