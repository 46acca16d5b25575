"""`python -m ernie_gram.preflight`: what it checks, prints and refuses; it writes nothing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.commands import Done, assert_one_line_error, call
from tests.support.runs import FINISHED, options

SPEED = ["--peak_tflops=0.1", "--bandwidth=1GB"]


def preflight(*arguments: str) -> Done:
    from ernie_gram.preflight import main

    return call(main, *arguments)


def test_it_leaves_the_folder_of_a_run_as_it_is(built: Path, finished: Path, tmp_path: Path) -> None:
    output = Path(shutil.copytree(finished, tmp_path / "run"))
    (output / "step_24").rename(output / ".step_24.old")  # a killed process was replacing it
    before = sorted(output.rglob("*"))
    done = preflight(*options(built, output, *FINISHED), *SPEED)
    assert done.returncode == 0, done.stderr
    assert sorted(output.rglob("*")) == before


def test_it_checks_the_corpora_and_predicts_and_writes_nothing(built: Path, tmp_path: Path) -> None:
    done = preflight(*options(built, tmp_path / "run"), *SPEED, "--nodes=2", "--gpus=2", "--memory=10MB")
    assert done.returncode == 0, done.stderr
    assert re.search(r"files +\S*corpus: \d+ files \([\d,]+ bytes\) match their digests", done.stdout)
    assert "8 sequences on 4 processes, at most 2 each" in done.stdout
    assert re.search(r"memory +[\d.]+ MB per process", done.stdout)
    assert re.search(r"10\.0 MB hold \d+ sequences at a time at most", done.stdout)
    assert re.search(r"[\d,]+ steps per day, 1,000,000 steps in [\d.]+ minutes", done.stdout)
    assert "measured " not in done.stdout.replace("not measured", "")
    assert not list(tmp_path.iterdir())


def test_it_predicts_evaluations_of_the_sequences_that_exist(built: Path, tmp_path: Path) -> None:
    few, many = (
        preflight(*options(built, tmp_path / "run"), "--peak_tflops=0.001", f"--trainer.eval_sequences={number}").stdout
        for number in (10_000, 1_000_000)
    )
    assert few == many
    assert re.search(r"evaluations of [\d.]+ s included", few)


def test_without_a_corpus_it_predicts_from_assumed_sizes(tmp_path: Path) -> None:
    arguments = [f"--paths.output={tmp_path / 'run'}", "--assume=30522,300000,1.9", *SPEED]
    done = preflight(
        "--config", "conf/pretrain/base_en_160g.yaml", *arguments, "--nodes=8", "--gpus=8", "--memory=32GB"
    )
    assert done.returncode == 0, done.stderr
    batch = "5,112 sequences on 64 processes, at most 80 each"
    assert f"{batch} in 4 micro-batches of at most 20: 476 slots" in done.stdout
    assert "accumulated gradients 1.59 GB" in done.stdout
    assert done.stderr == ""
    # The first argument may be the file, as for `pretrain`.
    for order in (
        ["conf/pretrain/base_en_160g.yaml", "--nodes=8"],
        ["--nodes", "8", "conf/pretrain/base_en_160g.yaml"],
    ):
        again = preflight(*order, *arguments, "--gpus=8", "--memory=32GB")
        assert (again.stdout, again.stderr) == (done.stdout, done.stderr)
    assert "CONFIG, or --config CONFIG: a YAML file" in " ".join(preflight("--help").stdout.split())


def test_a_given_peak_is_that_of_gpus_unless_the_device_is_a_cpu() -> None:
    """GPUs store attention weights."""

    def memory(device: str) -> float:
        arguments = ["conf/pretrain/base_en_16g.yaml", "--assume=30522,300000,1.9", f"--trainer.device={device}"]
        found = re.search(r"memory +([\d.]+) GB", preflight(*arguments, *SPEED).stdout)
        assert found
        return float(found[1])

    assert memory("cpu") < memory("auto") == memory("gpu")


def test_a_peak_that_is_not_given_is_measured_and_divided_among_processes_on_cpus(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ernie_gram.distributed import measure

    monkeypatch.setattr(measure, "matmul_peak", lambda executor, precision: 4e12)
    arguments = [*options(built, tmp_path / "run"), "--gpus=2", "--utilisation=0.25"]
    done = preflight(*arguments)
    assert done.returncode == 0, done.stderr
    assert "measured 2.000 TFLOP/s of each process" in done.stdout
    assert re.search(r"step +[\d.]+ s at 25% of 2\.00 TFLOP/s, and the exchange: give --bandwidth", done.stdout)
    given = preflight(*arguments, "--peak_tflops=2", "--trainer.device=cpu")
    assert given.stdout.splitlines()[-7:] == done.stdout.splitlines()[-7:]


def test_more_assumed_tokens_than_rows_of_the_embedding_are_refused(tmp_path: Path) -> None:
    arguments = [f"--paths.output={tmp_path / 'run'}", "--assume=18001,300000,1.9", *SPEED]
    done = preflight("--config", "conf/pretrain/base_zh.yaml", *arguments)
    assert done.returncode == 2
    assert done.stderr == "error: --assume: 18001 tokens, but model.vocab_size is 18000; give --model.vocab_size null\n"


def test_assumed_sizes_do_not_go_with_a_start_model(tmp_path: Path) -> None:
    """Its sizes would be ignored."""
    arguments = ["conf/pretrain/from_bert_en.yaml", "--assume=30522,300000,1.9", *SPEED]
    message = "--assume: the model of paths.start is not read; give its sizes as --model.KEY, and --paths.start null"
    assert_one_line_error(preflight(*arguments), message)
    done = preflight(*arguments, "--paths.start=null", f"--paths.output={tmp_path / 'run'}")
    assert done.returncode == 0, done.stderr


def test_a_damaged_corpus_is_an_error(built: Path, tmp_path: Path) -> None:
    corpus = Path(shutil.copytree(built / "corpus", tmp_path / "corpus"))
    units = corpus / "units.bin"
    content = bytearray(units.read_bytes())
    content[10] ^= 1
    units.write_bytes(content)
    done = preflight(*options(built, tmp_path / "run"), f"--paths.corpus={corpus}", *SPEED)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"error: {units}: the content does not match the digest")
    assert "Predicted" not in done.stdout


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--gpus=9", "data.batch_size: 9 processes, but only 8 sequences in a batch"),
        ("--utilisation=1.5", "argument --utilisation: 1.5 is not in (0, 1]"),
        ("--peak_tflops=0", "argument --peak_tflops: 0 is not in (0, 1e+06]"),
        ("--memory=0GB", "argument --memory: '0GB': expected a size such as 500MB or 2GB"),
        ("--memory=much", "argument --memory: 'much': expected a size such as 500MB or 2GB"),
        ("--assume=1,2", "argument --assume: 1,2 is not TOKENS,NGRAMS,TOKENS_PER_UNIT"),
        ("--assume=10,5,0.5", "argument --assume: 10,5,0.5: expected"),
        ("--datta.batch_size=8", "unknown key datta.batch_size; did you mean data.batch_size?"),
    ],
)
def test_invalid_options_give_a_one_line_error(built: Path, tmp_path: Path, option: str, message: str) -> None:
    done = preflight(*options(built, tmp_path / "run"), *SPEED, option)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
