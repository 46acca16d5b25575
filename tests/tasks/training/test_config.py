"""The configuration of fine-tuning: every task has settings, and errors name the key."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from ernie_gram.config.loading import explained_yaml, flatten, load_config
from reader.errors import InputError
from reader.system.untrusted_text import read_yaml
from tasks.registry import TASKS
from tasks.training.config import FinetuneConfig
from tests.support.commands import ROOT

CONF = ROOT / "conf" / "tasks"


def load(*arguments: str) -> FinetuneConfig:
    return load_config(FinetuneConfig, list(arguments))[0]


def test_every_task_has_settings_and_a_run_resumes_only_with_the_same() -> None:
    assert {path.stem for path in CONF.glob("*")} == {*TASKS}
    # All but the task, its files and its bad rows, which their digests stand for, and what changes no result.
    given = load("--task=cola").identity()
    expected = {key for key in flatten(asdict(FinetuneConfig())) if not key.startswith(("paths.", "trainer."))}
    assert set(given) == expected - {"task", "on_bad_row"}


@pytest.mark.parametrize("name", TASKS)
def test_the_settings_of_a_task_load_and_name_it(name: str) -> None:
    config = load("--config", str(CONF / f"{name}.yaml"))
    assert config.task == name
    assert (config.optimizer.layer_decay == 1) == (name in read_yaml(ROOT / "conf" / "registry" / "clue.yaml"))


def test_the_resolved_configuration_can_be_read_back(tmp_path: Path) -> None:
    config = load("--config", str(CONF / "cmrc2018.yaml"), "--trainer.save_every=7")
    (tmp_path / "config.yaml").write_text(explained_yaml(config))
    assert load("--config", str(tmp_path / "config.yaml")) == config


@pytest.mark.parametrize(
    "option",
    [
        "optimizer.epochs=0",
        "optimizer.learning_rate=-1",
        "optimizer.warmup_share=1",
        "optimizer.layer_decay=0",
        "dropout.hidden=1",
        "evaluation.every=0",
        "trainer.save_every=0",
        "trainer.workers=0",
        "input.max_seq_len=7",
        "input.doc_stride=0",
        "input.max_query_len=0",
        "span.n_best=0",
        "span.null_threshold=.nan",
    ],
)
def test_an_impossible_setting_is_refused_with_its_key(option: str) -> None:
    with pytest.raises(InputError, match=f"^{option.partition('=')[0]}: "):
        load(f"--{option}")
