"""`ernie-gram preflight`: what it prints and refuses; it writes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ernie_gram.preflight import main
from tests.support.commands import Done, assert_one_line_error, call
from tests.support.runs import options

SPEED = ["--peak_tflops=0.1"]


def preflight(*arguments: str) -> Done:
    return call(main, *arguments)


def test_it_predicts_and_writes_nothing(built: Path, tmp_path: Path) -> None:
    done = preflight(*options(built, tmp_path / "run"), *SPEED, "--nodes=2", "--gpus=2").ok()
    assert "8 sequences on 4 processes, at most 2 each" in done.stdout
    assert re.search(r"memory +[\d.]+ MB per process", done.stdout)
    assert re.search(r"time +at least (\d+ days?, )?\d+:\d\d:00 for 1,000,000 steps, [\d,]+ per day", done.stdout)
    assert not list(tmp_path.iterdir())


def test_without_a_corpus_it_predicts_from_assumed_sizes(tmp_path: Path) -> None:
    arguments = [f"--paths.output={tmp_path / 'run'}", "--assume=30522,300000,1.9", *SPEED]
    config = "conf/pretrain/base_en_160g.yaml"
    done = preflight("--config", config, *arguments, "--nodes=8", "--gpus=8").ok()
    batch = "5,112 sequences on 64 processes, at most 80 each"
    assert f"{batch} in 4 micro-batches of at most 20: 476 slots" in done.stdout
    assert "accumulated gradients 1.59 GB" in done.stdout
    assert done.stderr == ""
    # The first argument may be the file, as for `pretrain`.
    for order in ([config, "--nodes=8"], ["--nodes", "8", config]):
        again = preflight(*order, *arguments, "--gpus=8")
        assert (again.stdout, again.stderr) == (done.stdout, done.stderr)


def test_a_given_peak_is_that_of_gpus_unless_the_device_is_a_cpu() -> None:
    """GPUs store attention weights."""

    def memory(device: str) -> float:
        arguments = ["conf/pretrain/base_en_16g.yaml", "--assume=30522,300000,1.9", f"--trainer.device={device}"]
        found = re.search(r"memory +([\d.]+) GB", preflight(*arguments, *SPEED).stdout)
        assert found
        return float(found[1])

    assert memory("cpu") < memory("auto") == memory("gpu")


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["--gpus=9"], "data.batch_size"),
        (["--peak_tflops=0"], "argument --peak_tflops"),
        (["--utilisation=1.5"], "argument --utilisation"),
        (["--assume=1,2"], "argument --assume"),
        (["--assume=10,5,0.5"], "argument --assume"),
        (["--assume=18001,5,1.9", "--config=conf/pretrain/base_zh.yaml", "--model.vocab_size=18000"], "--assume"),
        (["--assume=1000,5,1.9", "--paths.start=bert"], "--assume"),
        (["--datta.batch_size=8"], "command line: unknown key datta.batch_size"),
    ],
)
def test_invalid_options_give_a_one_line_error(built: Path, tmp_path: Path, arguments: list[str], key: str) -> None:
    assert_one_line_error(preflight(*options(built, tmp_path / "run"), *SPEED, *arguments), key)
