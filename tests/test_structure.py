"""How the house stands: imports run one way, and some things have one place."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.conftest import ROOT

ORDER = ["reader", "ernie_gram", "tasks"]
SOURCES = [path for package in ORDER for path in sorted((ROOT / package).rglob("*.py"))]


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


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def test_imports_run_one_way_between_packages() -> None:
    assert len(SOURCES) > 20
    for path in SOURCES:
        package = path.relative_to(ROOT).parts[0]
        above = ORDER[ORDER.index(package) + 1 :]
        assert not {name for name in imports(path) if name.split(".")[0] in above}, path
        assert not {name for name in imports(path) if name.split(".")[0] == "tests"}, path


def test_imports_make_no_circle() -> None:
    names = {module(path) for path in SOURCES}
    edges = {module(path): imports(path) & names for path in SOURCES}
    done: set[str] = set()
    while edges:
        free = {name for name, needs in edges.items() if needs <= done}
        assert free, f"a circle among {sorted(edges)}"
        done |= free
        edges = {name: needs for name, needs in edges.items() if name not in free}


WITHOUT_PADDLE = (
    "model_config",
    "config",
    "config_file",
    "run",
    "checkpoint",
    "runlog",
    "plot",
    "ablation_plan",
    "run_ablation",
)


def test_the_reader_needs_no_paddle_and_settling_a_run_neither() -> None:
    for path in SOURCES:
        if path.relative_to(ROOT).parts[0] == "reader" or path.stem in WITHOUT_PADDLE:
            assert not {name for name in imports(path) if name.split(".")[0] == "paddle"}, path


def test_some_things_have_one_place() -> None:
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        if path.name != "distributed.py":
            assert "fleet" not in imports(path), path
            assert "paddle.distributed" not in imports(path), path
            assert "CUDAPlace" not in text, path
            assert "set_device" not in text, path
        if path.name != "layers.py":
            assert "create_parameter" not in text, path


def test_files_stay_small_and_none_is_called_utils() -> None:
    for path in SOURCES:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 350, path
        assert "util" not in path.stem, path
        assert (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "") != "", path
