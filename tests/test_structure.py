"""The structure of the project: imports run one way, and some things have one place."""

from __future__ import annotations

import ast

import pytest

from tests.support.commands import ROOT
from tests.support.import_graph import READER_ROOMS, WALLS, import_graph, imports, module, sources


@pytest.mark.parametrize("wall", WALLS)
def test_a_wall_stands(wall: str) -> None:
    graph = import_graph()
    assert len(graph) > 60
    assert list(WALLS[wall](graph)) == []


@pytest.mark.parametrize(
    ("wall", "name", "need"),
    [
        ("one_way", "reader.corpus.memmap", "ernie_gram.model.config"),
        ("one_way", "ernie_gram.model.config", "tasks.registry"),
        ("one_way", "ernie_gram.model.config", "tests.support.runs"),
        ("one_way", "reader.errors", "reader.corpus.memmap"),  # which imports it: a circle
        ("training_is_general", "ernie_gram.training.trainer", "ernie_gram.pretraining.config"),
        ("training_is_general", "ernie_gram.training.trainer", "ernie_gram.model.layers"),
        ("tasks_stand_alone", "tasks.finetune", "ernie_gram.pretraining.network"),
        ("loads_without_paddle", "ernie_gram.config.loading", "paddle"),
        ("loads_without_paddle", "ernie_gram.run.checkpoint", "ernie_gram.model.layers"),
        ("loads_without_paddle", "reader.errors", "paddle.nn"),
        ("rooms_in_order", "reader.text.text_files", "reader.corpus.memmap"),
        ("rooms_in_order", "reader.system.atomic_files", "reader.text.digest"),
    ],
)
def test_a_broken_wall_is_noticed(wall: str, name: str, need: str) -> None:
    graph = import_graph()
    graph[name] = graph.get(name, set()) | {need}
    assert [line for line in WALLS[wall](graph) if name in line]


def test_every_room_of_the_reader_is_in_the_order() -> None:
    assert {path.parent.name for path in (ROOT / "reader").glob("*/__init__.py")} == set(READER_ROOMS)


def test_some_things_have_one_place() -> None:
    for path in sources():
        name, text = module(path), path.read_text(encoding="utf-8")
        if not name.startswith("ernie_gram.distributed"):
            assert "fleet" not in imports(path), path
            assert "paddle.distributed" not in imports(path), path
            assert "CUDAPlace" not in text, path
            assert "set_device" not in text, path
        if name != "ernie_gram.model.layers":
            assert "create_parameter" not in text, path


def test_files_stay_small_and_none_is_called_utils() -> None:
    for path in sources():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 350, path
        assert "util" not in path.stem, path
        assert (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "") != "", path
