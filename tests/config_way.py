"""Counts the places at which a run's config stops on its way from the Start button.

A place is a function of `app`, `core` or `workers` that receives the config: it has a parameter annotated with
`RunConfig`, or with a class that holds one (`ResolvedRun`, `Checked` …: a class with a field so annotated). The way
begins at the Start intent and follows the calls in each place to the next ones. Methods of `RunConfig` itself are no
places. Nor is a function that is handed single settings: it does not know the config any more. `single` counts those,
as far as they are called from a place with a value read off the config.

The code is read and never run. A call is followed by its name through imports, `self` and classes; one that cannot be
told from its name (a method of an unknown object that several classes have) is not followed.

    python -m tests.config_way [FOLDER MODULE:FUNCTION]

prints the places of this checkout, or of another one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
START = "app.controllers.run_operations:Launching.start"
FOLDERS = ("app", "core", "workers")
CONFIG = "RunConfig"

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Place(NamedTuple):
    """A function: its module, and its name with its class's before it."""

    module: str
    name: str


class Code:
    """The functions of a checkout, found by name.

    Args:
        root: The checkout.
    """

    def __init__(self, root: Path) -> None:
        self.functions: dict[Place, Function] = {}
        self._modules: dict[str, ast.Module] = {}
        self._imports: dict[str, dict[str, tuple[str, str]]] = {}
        self._methods: dict[str, list[Place]] = {}
        for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
            module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            self._read(module, ast.parse(path.read_text(encoding="utf-8")))
        self.holders = self._holders()

    def receives(self, place: Place) -> bool:
        """Whether it has a parameter that is the config, or holds it."""
        given = self.functions[place].args
        return any(self._mentions(item.annotation) for item in (*given.posonlyargs, *given.args, *given.kwonlyargs))

    def called(self, place: Place) -> Iterator[tuple[Place, ast.Call]]:
        """The functions of this checkout that it calls, with the call."""
        for node in ast.walk(self.functions[place]):
            if isinstance(node, ast.Call) and (found := self._callee(place, node.func)) is not None:
                yield found, node

    def names_of_config(self, place: Place) -> set[str]:
        """The names that the config has in a function."""
        function = self.functions[place]
        names = {
            node.arg for node in ast.walk(function) if isinstance(node, ast.arg) and self._mentions(node.annotation)
        }
        assignments = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
        for node in assignments:
            for target, value in _pairs(node):
                if isinstance(target, ast.Name) and _is_config(value, names):
                    names.add(target.id)
        return names

    def _read(self, module: str, tree: ast.Module) -> None:
        self._modules[module] = tree
        imports = self._imports[module] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                imports.update({alias.asname or alias.name: (node.module, alias.name) for alias in node.names})
        for node in tree.body:
            if isinstance(node, Function):
                self.functions[Place(module, node.name)] = node
            elif isinstance(node, ast.ClassDef) and node.name != CONFIG:
                for method in node.body:
                    if isinstance(method, Function):
                        place = Place(module, f"{node.name}.{method.name}")
                        self.functions[place] = method
                        self._methods.setdefault(method.name, []).append(place)

    def _holders(self) -> frozenset[str]:
        """The config's class, and those with a field that is it or another one of them."""
        classes = [node for tree in self._modules.values() for node in tree.body if isinstance(node, ast.ClassDef)]
        self.holders = frozenset({CONFIG})
        while True:
            more = {
                node.name
                for node in classes
                if any(isinstance(item, ast.AnnAssign) and self._mentions(item.annotation) for item in node.body)
            }
            if more <= self.holders:
                return self.holders
            self.holders |= more

    def _mentions(self, annotation: ast.expr | None) -> bool:
        names = () if annotation is None else ast.walk(annotation)
        return any(isinstance(node, ast.Name) and node.id in self.holders for node in names)

    def _callee(self, place: Place, called: ast.expr) -> Place | None:
        if isinstance(called, ast.Name):
            return self._named(place.module, called.id)
        if not isinstance(called, ast.Attribute):
            return None
        if isinstance(called.value, ast.Name):
            found = self._of(place, called.value.id, called.attr)
            if found is not None:
                return found
        methods = self._methods.get(called.attr, [])
        return methods[0] if len(methods) == 1 else None

    def _of(self, place: Place, owner: str, name: str) -> Place | None:
        """`owner.name`, where the owner is `self`, a class or a module."""
        if owner in ("self", "cls"):
            owner = place.name.split(".")[0]
        if (here := Place(place.module, f"{owner}.{name}")) in self.functions:
            return here
        module, original = self._imports[place.module].get(owner, ("", ""))
        if f"{module}.{original}" in self._modules:
            return self._named(f"{module}.{original}", name)
        there = Place(module, f"{original}.{name}")
        return there if there in self.functions else None

    def _named(self, module: str, name: str) -> Place | None:
        """A function, or what a class does when it is called, by its name in a module."""
        for place in (Place(module, name), Place(module, f"{name}.__init__")):
            if place in self.functions:
                return place
        source, original = self._imports.get(module, {}).get(name, ("", ""))
        return self._named(source, original) if source in self._modules else None


class Way(NamedTuple):
    """Where the config stops, and which functions are handed single settings there."""

    places: tuple[Place, ...]
    single: tuple[Place, ...]


def config_way(root: Path = ROOT, start: str = START) -> Way:
    """Follows the config.

    Args:
        root: The checkout.
        start: ``module:Class.method`` of the Start intent.
    """
    code = Code(root)
    module, name = start.split(":")
    places, single = [Place(module, name)], dict[Place, None]()
    for place in places:  # grows
        names = code.names_of_config(place)
        for callee, call in code.called(place):
            if code.receives(callee):
                places += [callee] if callee not in places else []
            elif any(_reads(argument, names) for argument in (*call.args, *(item.value for item in call.keywords))):
                single[callee] = None
    return Way(tuple(places), tuple(single))


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _is_config(value: ast.expr, names: set[str]) -> bool:
    if isinstance(value, ast.Attribute):
        return value.attr in ("config", "run") and _is_config(value.value, names)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr == "replace" and _is_config(value.func.value, names)
    return isinstance(value, ast.Name) and value.id in names


def _reads(value: ast.expr, names: set[str]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(value))


def main(argv: list[str]) -> None:
    """Prints the places."""
    way = config_way(Path(argv[0]), argv[1]) if argv else config_way()
    for place in way.places:
        print(f"{place.module}:{place.name}")
    modules = len({place.module for place in way.places})
    print(f"{len(way.places)} places in {modules} modules; {len(way.single)} more functions are handed single settings")


if __name__ == "__main__":
    main(sys.argv[1:])
