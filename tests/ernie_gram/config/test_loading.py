"""Configuration files: bases, merging, types, misspelt keys, and that every file in conf/ loads."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from ernie_gram.config.loading import all_keys, explained_yaml, load_config
from ernie_gram.pretraining.config import PretrainConfig
from reader.corpus.memmap import Corpus
from reader.errors import InputError
from tests.support.commands import ROOT, python


def load(*arguments: str) -> PretrainConfig:
    return load_config(PretrainConfig, list(arguments), "test", "", {})[0]


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("path", sorted((ROOT / "conf" / "pretrain").glob("*.yaml")), ids=lambda path: path.name)
def test_every_shipped_file_loads(path: Path) -> None:
    config = load("--config", str(path))
    assert config.paths.output.startswith("output/")


def test_the_papers_settings() -> None:
    """Steps, batch, peak rate, warm-up and beta2 as published (appendix A)."""
    table = {
        "base_en_16g": (1_000_000, 256, 1e-4, 10_000, 0.99),
        "base_en_160g": (500_000, 5112, 4e-4, 24_000, 0.98),
        "base_zh": (3_000_000, 256, 1e-4, 4_000, 0.99),
    }
    for name, expected in table.items():
        config = load("--config", str(ROOT / f"conf/pretrain/{name}.yaml"))
        optimizer = config.optimizer
        found = (config.trainer.max_steps, config.data.batch_size, optimizer.learning_rate)
        assert (*found, optimizer.warmup_steps, optimizer.beta2) == expected
        assert (config.model.num_hidden_layers, config.model.hidden_size, config.model.num_attention_heads) == (
            12,
            768,
            12,
        )
        assert (optimizer.beta1, optimizer.epsilon, optimizer.weight_decay) == (0.9, 1e-6, 0.01)


def test_a_file_overrides_its_base_and_the_command_line_both(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path / "model.yaml", "{hidden_size: 64, num_attention_heads: 8}")
    write(tmp_path / "base.yaml", "model: model.yaml\ndata: {batch_size: 16, max_seq_len: 64}\nseed: 5\n")
    over = write(tmp_path / "sub" / "over.yaml", "base: ../base.yaml\ndata: {batch_size: 32}\nmodel: {emb_size: 16}\n")
    config = load("--config", over, "--data.max_seq_len", "100", "--model.emb_size=null")
    assert (config.model.hidden_size, config.model.num_attention_heads, config.model.emb_size) == (64, 8, None)
    assert (config.data.batch_size, config.data.max_seq_len, config.seed) == (32, 100, 5)
    assert config.optimizer == PretrainConfig().optimizer


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: {batchsize: 3}", r"x\.yaml: unknown key data\.batchsize; did you mean data\.batch_size\?"),
        ("batch_size: 3", r"x\.yaml: unknown key batch_size; did you mean data\.batch_size\?"),
        ("data: {batch_size: many}", r"x\.yaml or command line: .*data\.batch_size.*int.*many"),
        ("optimizer: {precision: half}", r"optimizer\.precision"),
        ("base: nowhere.yaml", r"nowhere\.yaml: cannot read"),
        ("base: deep.yaml", r"deep\.yaml: has a base of its own"),
        ("model: nowhere.yaml", r"nowhere\.yaml: cannot read"),
        ("optimizer: {max_grad_norm: 1e999}", r"optimizer\.max_grad_norm: inf is not finite"),
        ("- a\n- b", r"x\.yaml: expected `key: value`"),
        ("a: [", r"x\.yaml: not YAML"),
        ("model: {hidden_size: 10, num_attention_heads: 4}", r"model\.num_attention_heads: 4 heads do not divide"),
        ("model: {max_position_embeddings: 100}", r"data\.max_seq_len: 512 exceeds"),
        ("trainer: {max_steps: 100}", r"optimizer\.warmup_steps: 10000 leaves no step"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path / "deep.yaml", "base: deeper.yaml")
    path = write(tmp_path / "x.yaml", text)
    with pytest.raises(InputError, match=message):
        load("--config", path)


def test_numbers_may_be_written_as_people_write_them(tmp_path: Path) -> None:
    path = write(tmp_path / "x.yaml", "optimizer: {learning_rate: 1e-3, decay_steps: 2_000_000}")
    config = load("--config", path, "--optimizer.epsilon=1e-8")
    assert config.optimizer.learning_rate == 1e-3
    assert config.decay_steps == 2_000_000
    assert config.optimizer.epsilon == 1e-8


def test_the_printed_config_explains_every_field_and_reads_back(tmp_path: Path) -> None:
    config = load("--config", str(ROOT / "conf/pretrain/base_zh.yaml"), "--optimizer.decay_steps=5000000")
    text = explained_yaml(config)
    assert load("--config", write(tmp_path / "again.yaml", text)) == config
    lines = text.splitlines()
    for above, line in pairwise(lines):
        if not line.strip().startswith("#"):
            assert above.strip().startswith("# ") or above.endswith(":"), line
    assert set(yaml.safe_load(text)) == {field.name for field in dataclasses.fields(PretrainConfig)}


def test_help_and_print_config_name_every_key() -> None:
    for flag in ("--help", "--print_config"):
        done = python("-m", "ernie_gram.pretrain", flag)
        assert done.returncode == 0, done.stderr
        for key in all_keys(PretrainConfig):
            assert (f"--{key} " if flag == "--help" else key.rpartition(".")[2]) in done.stdout
    assert "decoupled weight decay of matrices" in done.stdout


def test_the_identity_is_all_that_can_change_a_result(corpus: Corpus) -> None:
    base = PretrainConfig()
    identity = base.identity(corpus.info)
    for section in ("model", "data", "objective", "optimizer"):
        for field in dataclasses.fields(getattr(base, section)):
            assert f"{section}.{field.name}" in identity
    other = dataclasses.replace(base, trainer=dataclasses.replace(base.trainer, workers=5, log_every=3))
    assert other.identity(corpus.info) == identity
    assert base.identity(dataclasses.replace(corpus.info, text="another")) != identity


def test_a_rate_that_is_0_before_the_end_is_refused() -> None:
    with pytest.raises(InputError, match=r"optimizer\.decay_steps: 200 is before trainer\.max_steps 1600"):
        load("--config", str(ROOT / "conf/pretrain/demo.yaml"), "--optimizer.decay_steps=200")
