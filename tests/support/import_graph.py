"""The imports of the source files, and the rules they keep."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.commands import ROOT

# Each may import what stands before it.
PACKAGES = ["reader", "ernie_gram", "tasks"]
READER_ROOMS = ["system", "tables", "text", "tokenization", "lexicon", "corpus", "batches"]

Graph = dict[str, set[str]]


def sources() -> list[Path]:
    """Every source file of the packages."""
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def module(path: Path) -> str:
    """The name of a source file's module; a package's is that of its folder."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> set[str]:
    """Every module that a source file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def import_graph() -> Graph:
    """Module -> the modules it imports, those of other projects included."""
    return {module(path): imports(path) for path in sources()}


def is_in(name: str, *packages: str) -> bool:
    """Whether a module is one of these packages or lies in one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def one_way(graph: Graph) -> Iterator[str]:
    """reader <- ernie_gram <- tasks, no package imports the tests, and there is no circle."""
    for name, needs in graph.items():
        above = PACKAGES[PACKAGES.index(name.split(".")[0]) + 1 :]
        yield from (f"{name} imports {need}" for need in needs if is_in(need, "tests", *above))
    edges = {name: {need for need in needs if need in graph} for name, needs in graph.items()}
    done: set[str] = set()
    while edges:
        free = {name for name, needs in edges.items() if needs <= done}
        if not free:
            yield f"a circle among {sorted(edges)}"
            return
        done |= free
        edges = {name: needs for name, needs in edges.items() if name not in free}


def training_is_general(graph: Graph) -> Iterator[str]:
    """The training loop knows neither the model nor pre-training."""
    for name, needs in graph.items():
        if is_in(name, "ernie_gram.training"):
            forbidden = ("ernie_gram.model", "ernie_gram.pretraining")
            yield from (f"{name} imports {need}" for need in needs if is_in(need, *forbidden))


def tasks_stand_alone(graph: Graph) -> Iterator[str]:
    """Fine-tuning needs nothing of pre-training."""
    for name, needs in graph.items():
        if is_in(name, "tasks"):
            yield from (f"{name} imports {need}" for need in needs if is_in(need, "ernie_gram.pretraining"))


def loads_without_paddle(graph: Graph) -> Iterator[str]:
    """Configurations and run folders are checked before Paddle loads; the reader never needs it."""
    for name in graph:
        if not is_in(name, "reader", "ernie_gram.config", "ernie_gram.run"):
            continue
        seen, waiting = {name}, [name]
        while waiting:
            here = waiting.pop()
            if any(is_in(need, "paddle") for need in graph[here]):
                yield f"{name} needs Paddle by way of {here}"
            new = {need for need in graph[here] if need in graph} - seen
            seen |= new
            waiting += new


def rooms_in_order(graph: Graph) -> Iterator[str]:
    """A folder of the reader imports only those before it, and no command."""
    rooms = [f"reader.{room}" for room in READER_ROOMS]
    for name, needs in graph.items():
        for place, room in enumerate(rooms):
            if is_in(name, room):
                allowed = (*rooms[: place + 1], "reader.errors")
                inside = (need for need in needs if is_in(need, "reader") and need != "reader")
                yield from (f"{name} imports {need}" for need in inside if not is_in(need, *allowed))


WALLS = {rule.__name__: rule for rule in (one_way, training_is_general, tasks_stand_alone, loads_without_paddle)}
WALLS["rooms_in_order"] = rooms_in_order
