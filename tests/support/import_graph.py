"""The import graph of the source files, and the rules that imports must follow."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.commands import ROOT

# A package may import only those before it in its list.
PACKAGES = ["reader", "ernie_gram", "tasks"]
READER_PACKAGES = ["system", "tables", "text", "tokenization", "lexicon", "corpus", "batches"]
TASK_PACKAGES = [
    *("data", "layouts", "metrics", "kinds", "registry", "reading"),
    *("training", "prediction", "sweeps"),
]

WITHOUT_PADDLE = (
    "reader",
    "ernie_gram.config",
    "ernie_gram.run",
    "ernie_gram.planning.sizes",
    "ernie_gram.distributed.buckets",
    "ernie_gram.formats.untrusted",
    *("ernie_gram.model.config", "ernie_gram.training.config", "ernie_gram.pretraining.config"),
    *("ernie_gram.model.parameters", "ernie_gram.pretraining.sizes"),
    *(f"ernie_gram.pretraining.{name}" for name in ("prepare", "rungs", "count_baselines")),
    *(f"ernie_gram.inference.{name}" for name in ("description", "requests", "texts", "units")),
    *("ernie_gram.pretraining.start_model", "ernie_gram.pretraining.warm_start"),
    "ernie_gram.plot",
    *(f"tasks.{name}" for name in ("list", "check_files", "score", "sweep")),
    *(f"tasks.{name}" for name in TASK_PACKAGES if name not in ("training", "prediction")),
    *(f"tasks.training.{name}" for name in ("config", "prepare", "splits", "description")),
    *(f"tasks.prediction.{name}" for name in ("finetuned", "own_texts")),
    "ernie_gram.training.selection",
)

Graph = dict[str, set[str]]


def sources() -> list[Path]:
    """Return all source files of the packages."""
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def module(path: Path) -> str:
    """Return the name of a source file's module; `__init__.py` has the name of its package."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports(path: Path) -> set[str]:
    """Return every module that a source file imports, at the top or inside functions. Callers must not change it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; use the full name"
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def import_graph() -> Graph:
    """Return for each module the modules that it imports, including those of other projects."""
    return {module(path): imports(path) for path in sources()}


def is_in(name: str, *packages: str) -> bool:
    """Return whether a module is one of these packages or is inside one of them."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def imports_run_one_way(graph: Graph) -> Iterator[str]:
    """Yield violations: tasks imports ernie_gram, which imports reader; none imports tests; there is no cycle."""
    for name, needs in graph.items():
        above = PACKAGES[PACKAGES.index(name.split(".")[0]) + 1 :]
        yield from (f"{name} imports {need}" for need in needs if is_in(need, "tests", *above))
    unsorted = {name: {need for need in needs if need in graph} for name, needs in graph.items()}
    sorted_modules: set[str] = set()
    while unsorted:
        independent = {name for name, needs in unsorted.items() if needs <= sorted_modules}
        if not independent:
            yield f"an import cycle among {sorted(unsorted)}"
            return
        sorted_modules |= independent
        unsorted = {name: needs for name, needs in unsorted.items() if name not in independent}


def training_is_independent_of_model_and_pretraining(graph: Graph) -> Iterator[str]:
    """Yield violations: training imports neither the model nor pre-training, and the model imports neither of both."""
    for one, other in (("training", "model"), ("model", "training")):
        forbidden = (f"ernie_gram.{other}", "ernie_gram.pretraining")
        for name, needs in graph.items():
            if is_in(name, f"ernie_gram.{one}"):
                yield from (f"{name} imports {need}" for need in needs if is_in(need, *forbidden))


def tasks_are_independent_of_pretraining(graph: Graph) -> Iterator[str]:
    """Yield violations: fine-tuning does not import pre-training; only sweeps do, which train both."""
    for name, needs in graph.items():
        if is_in(name, "tasks") and not is_in(name, "tasks.sweeps.pretrainings"):
            yield from (f"{name} imports {need}" for need in needs if is_in(need, "ernie_gram.pretraining"))


def pretraining_is_independent_of_planning(graph: Graph) -> Iterator[str]:
    """Yield violations: pre-training does not import its planning, which imports pre-training."""
    for name, needs in graph.items():
        if is_in(name, "ernie_gram.pretraining"):
            yield from (f"{name} imports {need}" for need in needs if is_in(need, "ernie_gram.planning"))


def loads_without_paddle(graph: Graph) -> Iterator[str]:
    """Yield violations: what is needed before Paddle is loaded imports no Paddle, not even indirectly.

    Configs, run folders and the files of tasks are checked before Paddle is loaded; the reader, plots and sweeps
    never need it.
    """
    for name in graph:
        # The networks of the kinds are imported when they are needed.
        if not is_in(name, *WITHOUT_PADDLE) or name == "tasks.kinds.networks":
            continue
        reached, queue = {name}, [name]
        while queue:
            module_name = queue.pop()
            if any(is_in(need, "paddle") for need in graph[module_name]):
                yield f"{name} imports Paddle through {module_name}"
            new = {need for need in graph[module_name] if need in graph} - reached
            reached |= new
            queue += new


def inner_packages_are_in_order(graph: Graph) -> Iterator[str]:
    """Yield violations: a package of the reader, or of the tasks, imports only those before it, and no command."""
    for outer, names, more in (("reader", READER_PACKAGES, ["reader.errors"]), ("tasks", TASK_PACKAGES, [])):
        packages = [f"{outer}.{name}" for name in names]
        for name, needs in graph.items():
            for index, package in enumerate(packages):
                if is_in(name, package):
                    allowed = (*packages[: index + 1], *more)
                    inside = (need for need in needs if is_in(need, outer) and need != outer)
                    yield from (f"{name} imports {need}" for need in inside if not is_in(need, *allowed))


def layouts_know_no_task(graph: Graph) -> Iterator[str]:
    """Yield violations: a layout imports, of tasks, only layouts, the types of examples and the search for answers."""
    for name, needs in graph.items():
        if is_in(name, "tasks.layouts"):
            allowed = ("tasks.layouts", "tasks.data.examples")
            yield from (
                f"{name} imports {need}" for need in needs if is_in(need, "tasks") and not is_in(need, *allowed)
            )


IMPORT_RULES = {
    rule.__name__: rule
    for rule in (
        imports_run_one_way,
        training_is_independent_of_model_and_pretraining,
        tasks_are_independent_of_pretraining,
        pretraining_is_independent_of_planning,
        loads_without_paddle,
        inner_packages_are_in_order,
        layouts_know_no_task,
    )
}
