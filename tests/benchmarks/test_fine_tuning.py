"""The parts of the comparisons of fine-tuning that decide what is compared, and how it is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reader.errors import InputError
from tasks.kinds.catalog import kind_of
from tasks.kinds.multiple_choice import MultipleChoiceExample
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.settings import InputSettings, KindSettings
from tasks.kinds.tagging.example import TaggingExample
from tasks.registry import TASKS
from tasks.training.config import FinetuneConfig, FinetuneOptimizer, FinetunePaths
from tasks.training.prepare import prepare
from tests.benchmarks.fine_tuning import (
    MEASURED,
    TaskData,
    constant_score,
    mean_and_range,
    reported_scores,
    seconds_rows,
    table,
)
from tests.benchmarks.fine_tuning_plan import plain
from tests.benchmarks.fine_tuning_results import ResultsFile
from tests.benchmarks.subsets import examples_for, spread, with_examples
from tests.support.tiny_task import make_task
from tests.tasks.kinds.tiny import PLACE


def test_items_are_evenly_spread_and_in_order() -> None:
    assert spread(range(10), 4) == [0, 2, 5, 7]
    assert spread(range(3), 5) == spread(range(3), None) == [0, 1, 2]


def test_a_part_of_a_split_is_encoded_and_the_account_of_its_rows_is_kept(tmp_path: Path) -> None:
    make_task(tmp_path)
    config = FinetuneConfig(
        task=str(tmp_path / "data/task.yaml"),
        input=InputSettings(max_seq_len=16),
        optimizer=FinetuneOptimizer(batch_size=8),
        paths=FinetunePaths(str(tmp_path / "model"), str(tmp_path / "data"), str(tmp_path / "unused")),
    )
    run = prepare(config)
    part = with_examples(run, run.train, 20, training=True)
    assert part.examples == spread(run.train.examples, 20)
    assert len(part.features) == 20
    assert part.report == run.train.report
    assert with_examples(run, run.train, None, training=True) is run.train
    assert examples_for(run.train, 20) == 20
    # Every example counts as three samples.
    features = replace(run.train.features, example_of=run.train.features.example_of.repeat(3))
    assert examples_for(replace(run.train, features=features), 20) == 6


def test_our_side_starts_from_a_given_output_layer(tmp_path: Path) -> None:
    import paddle

    from ernie_gram.distributed.world import start_world
    from ernie_gram.training.trainer import Trainer
    from tasks.training.evaluation import Predictor
    from tasks.training.job import network_of
    from tests.benchmarks.fine_tuning_ours import with_output_layer
    from tests.support.static_programs import fresh_scope

    make_task(tmp_path)
    (tmp_path / "run").mkdir()
    places = FinetunePaths(str(tmp_path / "model"), str(tmp_path / "data"), str(tmp_path / "run"))
    config = FinetuneConfig(task=str(tmp_path / "data/task.yaml"), input=InputSettings(max_seq_len=16), paths=places)
    run = prepare(config)
    width, size = run.kind.width, run.model.config.hidden_size
    layer = {"weight": np.arange(width * size).reshape(width, size).tolist(), "bias": [0.5] * width}
    with fresh_scope():
        network = network_of(run)
        Trainer(with_output_layer(run, layer)(run, network, Predictor(network, 1)), start_world("cpu"))
        scope = paddle.static.global_scope()
        weight, bias = (np.array(scope.find_var(f"cls_out_{part}").get_tensor()) for part in "wb")
    assert weight.T.tolist() == layer["weight"]
    assert bias.tolist() == layer["bias"]


def test_the_constant_prediction_is_the_most_frequent_label_of_the_training_rows() -> None:
    labels = ("entailment", "not_entailment")
    kind = kind_of(TASKS["rte"], KindSettings())
    train, dev = (
        [SentenceExample(str(i), "a", "b", labels[label], PLACE) for i, label in enumerate(split)]
        for split in ((1, 1, 0), (0, 0, 0, 1))
    )
    task = TaskData(kind, list(train), list(dev))
    assert constant_score(task) == 0.25
    assert reported_scores(task, [labels[0]] * 4)["accuracy"] == 0.75


def test_examples_become_plain_values() -> None:
    pair = SentenceExample("1", "a", "b", "x", PLACE)
    assert plain(pair, True) == {"text_a": "a", "text_b": "b", "label": "x"}
    assert plain(replace(pair, text_b=None), False) == {"text_a": "a"}
    tagged = TaggingExample("1", ("a",), " ", ("O",), (), PLACE)
    assert plain(tagged, True) == {"tokens": ("a",), "tags": ("O",)}
    choice = MultipleChoiceExample("1", "c", "q", ("x", "y"), 1, PLACE)
    assert plain(choice, False) == {"context": "c", "question": "q", "options": ("x", "y")}


@pytest.mark.parametrize(("values", "shown"), [([0.5], "50.0"), ([0.25, 0.75], "50.0 (25.0..75.0)")])
def test_scores_are_shown_as_mean_and_range(values: list[float], shown: str) -> None:
    assert mean_and_range(values, 100) == shown


def test_seconds_are_medians_of_the_seeds_that_all_sides_ran_on_one_processor() -> None:
    def results(*measured: tuple[str, float] | None) -> list[dict[str, Any] | None]:
        return [m and {"processor": m[0], "seconds": dict.fromkeys(MEASURED, m[1])} for m in measured]

    ours = results(("a", 3.0), ("b", 1.0), ("a", 5.0), ("a", 40.0))
    other = results(("a", 8.0), ("a", 1.0), ("a", 2.0), None)
    assert seconds_rows("RTE", [ours, other], "a")[0] == ["RTE", "training", "4.0", "5.0", "0.80"]
    assert [row[1] for row in seconds_rows("RTE", [ours, other], "a")] == list(MEASURED)
    assert seconds_rows("RTE", [ours], "b")[0] == ["RTE", "training", "1.0", "-"]
    assert seconds_rows("RTE", [ours, other], "b") == []


def test_a_table_aligns_numbers_to_the_right() -> None:
    assert table([["task", "a", "b"], ["x", "1", "2"]], 1) == "| task | a | b |\n| --- | ---: | ---: |\n| x | 1 | 2 |"


def test_results_are_found_by_task_side_and_seed(tmp_path: Path) -> None:
    file = ResultsFile(tmp_path / "results.jsonl")
    made = {"model": "x", "threads": 1}
    assert file.find("rte", "ours", 1, made) is None
    results = [
        {"task": task, "side": "ours", "seed": seed, "made_with": made, "score": 0.5, "seconds": {}}
        for task in ("rte", "cola")
        for seed in (1, 2)
    ]
    for result in results:
        file.add(result)
    assert ResultsFile(file.path).all() == results
    assert file.find("rte", "ours", 2, made) == results[1]
    assert file.find("rte", "ours", 3, made) is None
    with pytest.raises(InputError, match="cola, ours, seed 1 was made with other settings"):
        file.find("cola", "ours", 1, {**made, "model": "y"})


def test_a_damaged_line_of_the_results_is_named(tmp_path: Path) -> None:
    file = ResultsFile(tmp_path / "results.jsonl")
    file.add({"task": "rte", "side": "ours", "seed": 1, "made_with": {}, "score": 1.0, "seconds": {}})
    with file.path.open("a") as lines:
        lines.write('{"task": "rte", "si')
    with pytest.raises(InputError, match="line 2: not a result"):
        file.all()
