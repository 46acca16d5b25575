"""The paper's settings, grids, ladder and scores, typed from its source or in docs/paper.md, against conf/."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import asdict
from typing import Any

import pytest

from ernie_gram.config.loading import flatten, load_config, read_values
from ernie_gram.pretraining.config import PretrainConfig
from reader.build_options import parse_orders
from reader.system.untrusted_text import read_yaml
from tasks.metrics.catalog import METRICS
from tasks.registry import TASKS
from tasks.sweeps.runs import GRIDS, read_grid
from tasks.sweeps.table import PUBLISHED, published_columns
from tasks.training.config import FinetuneConfig
from tests.support.commands import ROOT
from tests.support.objectives import CONFIGS, RUNGS, load

# Table 6: steps, batch size, learning rate, warm-up steps, beta2; then what all three have.
PRETRAINING = {
    "base_en_16g": (1_000_000, 256, 1e-4, 10_000, 0.99),
    "base_en_160g": (500_000, 5112, 4e-4, 24_000, 0.98),
    "base_zh": (3_000_000, 256, 1e-4, 4_000, 0.99),
}
COMMON = (12, 768, 12, 0.9, 1e-6, 0.01, 0.1)
# Tables 7 to 9: batch sizes, learning rates, epochs, weight decay.
GLUE = ([16, 32], [5e-5, 1e-4, 1.5e-4], [10, 15], 0.01)
SQUAD, RACE = ([48], [1e-4, 1.5e-4, 2e-4], [2, 4], 0.0), ([32], [8e-5, 1e-4], [4, 5], 0.01)
TEXTS = ([32], [5e-5, 1e-4, 1.5e-4], [3], 0.01)
FINETUNING: dict[str, tuple[list[int], list[float], list[int], float]] = {
    "mnli": ([16, 32], [5e-5, 1e-4, 1.5e-4], [3], 0.01),
    **dict.fromkeys(("qnli", "qqp", "sst2", "cola", "mrpc", "rte", "stsb"), GLUE),
    **dict.fromkeys(("squad1", "squad2"), SQUAD),
    **dict.fromkeys(("race", "race_high", "race_middle"), RACE),
    **dict.fromkeys(("imdb", "ag_news"), TEXTS),
}
# Table 10: batch size, learning rate, epochs, dropout.
CHINESE = {
    "xnli": (256, 1.5e-4, 3, 0.1),
    "lcqmc": (32, 4e-5, 2, 0.1),
    "cmrc2018": (64, 1.5e-4, 5, 0.2),
    "dureader": (64, 1.5e-4, 5, 0.1),
    "drcd": (64, 1.5e-4, 3, 0.1),
    "msra_ner": (16, 1.5e-4, 10, 0.1),
}
# Table 12: each rung, and how it differs from another one.
OFF = {"comprehensive_weight": 0.0}, {"generator_weight": 0.0, "rtd_weight": 0.0}
LADDER: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "both": ("full", {"use_relative_position": False}, {}),
    "enrm": ("both", {}, OFF[0]),
    "cnp": ("both", {}, OFF[1]),
    "explicit": ("cnp", {}, OFF[0]),
    "contiguous": ("explicit", {}, {"masking": "contiguous", "explicit_weight": 0.0, "contiguous_weight": 1.0}),
    "token": ("contiguous", {}, {}),
}
# Number of rows of each table, and the sum of all its scores.
TOTALS = {
    1: (10, 7753.8),
    2: (12, 3313.2),
    3: (7, 1201.7),
    4: (11, 8822.8),
    5: (8, 4305.9),
    11: (9, 9823.2),
    12: (5, 4296.3),
    13: (6, 3465.0),
}
TABLES = read_yaml(PUBLISHED)["tables"]
# The rows of ERNIE-Gram and its variants, as docs/paper.md has them: table, columns in its first row, name, scores.
ROW = re.compile(r"^\| (?:\*\*)?(\d+)(?:\*\*: (.*?))? \| (.+?) \| ([\d. ]+) \|$", re.MULTILINE)
SCORES = ROW.findall((ROOT / "docs" / "paper.md").read_text("utf-8"))


@pytest.mark.parametrize("name", PRETRAINING)
def test_pre_training_has_the_papers_settings(name: str) -> None:
    """Table 6, and section 4.2: 512 tokens, relative position, a generator of a third of the hidden size."""
    config = load("--config", str(ROOT / f"conf/pretrain/{name}.yaml"))
    model, optimizer, objective = config.model, config.optimizer, config.objective
    found = (config.trainer.max_steps, config.data.batch_size, optimizer.learning_rate, optimizer.warmup_steps)
    assert (*found, optimizer.beta2) == PRETRAINING[name]
    sizes = (model.num_hidden_layers, model.hidden_size, model.num_attention_heads)
    rates = (optimizer.beta1, optimizer.epsilon, optimizer.weight_decay)
    assert (*sizes, *rates, model.hidden_dropout_prob) == COMMON
    assert model.attention_probs_dropout_prob == COMMON[-1]
    assert (config.data.max_seq_len, objective.mask_fraction, objective.masking) == (512, 0.15, "explicit")
    assert config.data.pack_documents
    assert (model.use_relative_position, model.relative_position_start) == (True, "normal")
    assert config.generator.model(model).hidden_size * 3 == model.hidden_size


def test_the_lexicon_has_the_papers_size_by_default() -> None:
    """Section 4.2."""
    source = (ROOT / "reader" / "build_options.py").read_text("utf-8")
    [default] = set(re.findall(r'"default": "(\d:[\d:,]+)"', source))
    assert parse_orders(default) == {2: 200_000, 3: 100_000}


@pytest.mark.parametrize("task", [*FINETUNING, *CHINESE])
def test_fine_tuning_has_the_papers_settings_and_grid(task: str) -> None:
    """Tables 7 to 10: a grid for English, of which conf/tasks has one setting; one setting for Chinese.

    Appendix B.3: of a long text, the first 512 tokens are read.
    """
    own = read_values(FinetuneConfig, GRIDS.parent / "tasks" / f"{task}.yaml", {})
    settings, grid = flatten(asdict(FinetuneConfig())) | own, read_grid("paper", task)
    keys = [f"optimizer.{key}" for key in ("batch_size", "learning_rate", "epochs")]
    if task in CHINESE:
        *expected, dropout = CHINESE[task]
        assert (grid, [settings[key] for key in keys]) == ({}, expected)
        assert {settings[part] for part in ("head.dropout", "dropout.hidden", "dropout.attention")} == {dropout}
    else:
        *values, decay = FINETUNING[task]
        assert grid == dict(zip(keys, values, strict=True))
        assert all(settings[key] in grid[key] for key in keys)
        assert settings["optimizer.weight_decay"] == decay
    assert (settings["optimizer.warmup_share"], settings["optimizer.layer_decay"]) == (0.1, 0.8)
    if task in ("imdb", "ag_news"):
        assert settings["input.max_seq_len"] == 512


def test_the_rungs_are_the_rows_of_the_ablation() -> None:
    """Tables 5, 11 and 12: each rung differs from another one by what the paper removes, and in nothing else."""
    configs = {rung: load_config(PretrainConfig, ["--config", str(CONFIGS / f"{rung}.yaml")])[0] for rung in RUNGS}
    assert {"full", *LADDER} == {*RUNGS}
    full = configs["full"]
    assert full.model.use_relative_position
    terms = {"explicit", "comprehensive", "generator", "rtd"}
    assert {key for key, value in vars(full.objective).items() if value == 1} == {f"{term}_weight" for term in terms}
    for rung, (other, model, objective) in LADDER.items():
        base = configs[other]
        expected = dataclasses.replace(
            base,
            model=dataclasses.replace(base.model, **model),
            objective=dataclasses.replace(base.objective, **objective),
            paths=configs[rung].paths,
        )
        assert configs[rung] == expected, rung


@pytest.mark.parametrize("number", TOTALS)
def test_the_published_scores_are_those_of_the_paper(number: int) -> None:
    table = TABLES[number]
    for _, columns, name, row in (each for each in SCORES if int(each[0]) == number):
        assert columns in ("", ", ".join(table["columns"]))
        assert table["rows"][name] == [float(value) for value in row.split()], name
    assert {len(row) for row in table["rows"].values()} == {len(table["columns"])}
    values = [value for row in table["rows"].values() for value in row if value is not None]
    assert (len(table["rows"]), round(sum(values), 1)) == TOTALS[number]
    assert TABLES.keys() == TOTALS.keys() == {int(each[0]) for each in SCORES}
    assert len(SCORES) == 21


def test_published_columns_are_scores_of_the_registry() -> None:
    english = published_columns(["mnli", "imdb", "squad1", "own"])
    assert [column["name"] for column in english] == ["ERNIE-Gram (16 GB)", "ERNIE-Gram (160 GB)"]
    assert english[0]["scores"] == {
        "mnli": {"accuracy": 87.1},
        "squad1": {"dev.exact_match": 86.2, "dev.f1": 92.3},
        "imdb": {"test.accuracy": 95.4},
    }
    assert published_columns(["own"]) == []
    for column in published_columns(TASKS):
        for name, scores in column["scores"].items():
            splits, metrics = TASKS[name].evaluation_splits, METRICS[TASKS[name].metric].reported
            known = {f"{split}.{metric}" for split in splits for metric in metrics} | {"accuracy"}
            assert scores.keys() <= known, name
