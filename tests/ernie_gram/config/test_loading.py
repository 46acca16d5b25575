"""Config files: base files, merging, types, unknown keys, help, and that every pre-training config in conf/ loads."""

from __future__ import annotations

import dataclasses
import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from ernie_gram.config.loading import all_keys, config_from_tree, explained_yaml, load_config
from ernie_gram.pretrain import main
from ernie_gram.pretraining.config import PretrainConfig
from reader.errors import InputError
from tasks.training.config import FinetuneConfig
from tests.support.commands import ROOT, call
from tests.support.objectives import load


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("path", sorted((ROOT / "conf" / "pretrain").glob("*.yaml")), ids=lambda path: path.name)
def test_every_pretraining_config_in_conf_loads(path: Path) -> None:
    config = load("--config", str(path))
    assert config.paths.output.startswith("output/")


def test_a_file_overrides_its_base_and_the_command_line_overrides_both(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(
        tmp_path / "base.yaml",
        "model: {hidden_size: 64, num_attention_heads: 8}\ndata: {batch_size: 16, max_seq_len: 64}\nseed: 5\n",
    )
    over = write(tmp_path / "sub" / "over.yaml", "base: ../base.yaml\ndata: {batch_size: 32}\nmodel: {emb_size: 16}\n")
    config = load("--config", over, "--data.max_seq_len", "100", "--model.emb_size=null")
    assert (config.model.hidden_size, config.model.num_attention_heads, config.model.emb_size) == (64, 8, None)
    assert (config.data.batch_size, config.data.max_seq_len, config.seed) == (32, 100, 5)
    assert config.optimizer == PretrainConfig().optimizer
    # Numbers may have an exponent or underscores.
    path = write(tmp_path / "x.yaml", "optimizer: {learning_rate: 1e-3, decay_steps: 2_000_000}\nmodel:\ndata: {}")
    config = load("--config", path, "--optimizer.epsilon=1e-8")
    assert (config.optimizer.learning_rate, config.decay_steps, config.optimizer.epsilon) == (1e-3, 2_000_000, 1e-8)
    assert config_from_tree(PretrainConfig, {"model": {}, "seed": 5}, "given") == PretrainConfig(seed=5)
    # What is given is known, also if it is the default.
    options = ["--config", over, "--optimizer.beta1", "0.9", "--model.emb_size=null", "--check"]
    assert load_config(PretrainConfig, options, "check")[1] == {
        *("check", "seed", "model.hidden_size", "model.num_attention_heads", "model.emb_size"),
        *("data.batch_size", "data.max_seq_len", "optimizer.beta1"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: {batchsize: 3}", r"x\.yaml: unknown key data\.batchsize; did you mean data\.batch_size\?"),
        ("batch_size: 3", r"x\.yaml: unknown key batch_size; did you mean data\.batch_size\?"),
        ("data: {batch_size: many}", r"x\.yaml: data\.batch_size: expected int, got many"),
        ("data: {batch_size: 2.5}", r"x\.yaml: data\.batch_size: .*2\.5"),
        ("data: {pack_documents: 3}", r"x\.yaml: data\.pack_documents: "),
        ("data: {batch_size: {}}", r"x\.yaml: data\.batch_size: "),
        ("model: {emb_size: wide}", r"x\.yaml: model\.emb_size: expected int \| None, got wide"),
        ("base: bad.yaml", r"bad\.yaml: data\.batch_size: .*few"),
        ("data: {batch_size: {a: 1}}", r"x\.yaml: unknown key data\.batch_size\.a; did you mean data\.batch_size\?"),
        ("model: tiny.yaml", r"x\.yaml: unknown key model; did you mean model\."),
        ("data: {batchsize: null}", r"x\.yaml: unknown key data\.batchsize"),
        ("data: {batch_size: 8, batch_size: 8}", r"x\.yaml: line 1: batch_size is given twice"),
        ("optimizer: {precision: half}", r"optimizer\.precision: .*'bfloat16'.*, got half"),
        ("base: nowhere.yaml", r"nowhere\.yaml: "),
        ("base: deep.yaml", r"deep\.yaml: "),
        ("optimizer: {max_grad_norm: 1e999}", r"optimizer\.max_grad_norm: "),
        ("- a\n- b", r"x\.yaml: "),
        ("a: [", r"x\.yaml: "),
        # Texts too are read as YAML, by another library.
        (f"data: {{batch_size: '{'[' * 300}'}}", r"x\.yaml: data\.batch_size: "),
        (f"data: {{batch_size: '0x{'f' * 300}'}}", r"x\.yaml: data\.batch_size: "),
        ("model: {hidden_size: 10, num_attention_heads: 4}", r"model\.num_attention_heads: 4 heads do not divide"),
        ("model: {max_position_embeddings: 100}", r"data\.max_seq_len: 512 .*--data\.max_seq_len 100"),
        ("optimizer: {decay_steps: 200, warmup_steps: 9}", r"optimizer\.decay_steps: 200"),
        ("trainer: {max_steps: 100}", r"optimizer\.warmup_steps: 10000 is not before step 100, "),
    ],
)
def test_an_invalid_config_gives_an_error_that_names_the_file_or_key(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path / "deep.yaml", "base: deeper.yaml")
    write(tmp_path / "bad.yaml", "data: {batch_size: few}")
    path = write(tmp_path / "x.yaml", text)
    with pytest.raises(InputError, match=message):
        load("--config", path)


@pytest.mark.parametrize("argument", ["--data.batch_size=many", "--optimizer.precision=half", "--data.batch_size", "x"])
def test_an_invalid_option_gives_an_error_that_names_the_command_line(tmp_path: Path, argument: str) -> None:
    path = write(tmp_path / "x.yaml", "data: {batch_size: 8}\nseed: 2")
    with pytest.raises(InputError, match=r"^command line: "):
        load("--config", path, argument)
    with pytest.raises(InputError, match=r"^--config: "):
        load("--config", path, f"--config={path}")


def test_the_printed_config_explains_every_field_and_loads_again(tmp_path: Path) -> None:
    config = load("--config", str(ROOT / "conf/pretrain/base_zh.yaml"), "--optimizer.decay_steps=5000000")
    text = explained_yaml(config)
    for printed in (text, explained_yaml(FinetuneConfig())):
        assert not re.search(r"\w(Config|Settings|Optimizer|Trainer|Paths)\b|\.py\b", printed), "a name from the source"
    assert load("--config", write(tmp_path / "again.yaml", text)) == config
    lines = text.splitlines()
    for above, line in pairwise(lines):
        if not line.strip().startswith("#"):
            assert above.strip().startswith("# ") or above.endswith(":"), line
    assert set(yaml.safe_load(text)) == {field.name for field in dataclasses.fields(PretrainConfig)}


def test_help_names_the_option_that_prints_every_key() -> None:
    usage = call(main, "--seed=1", "--help").ok().stdout
    assert usage == call(main, "-h").ok().stdout
    assert "--print_config" in usage
    printed = call(main, "--seed=1", "--print_config").ok().stdout
    for key in all_keys(PretrainConfig):
        assert key.rpartition(".")[2] in printed
