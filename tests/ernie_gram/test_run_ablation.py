"""The ablation command: training and resuming rungs, the table and the plot, errors, and termination."""

from __future__ import annotations

import csv
import shlex
import shutil
from pathlib import Path

import pytest

from ernie_gram.experiments.planned_run import PlannedRun, Result
from ernie_gram.pretraining.ablation_plan import RUNGS, plan
from ernie_gram.run.run_folder import lock_output
from ernie_gram.run.run_log import read_log
from ernie_gram.run_ablation import main, markdown
from reader.build import build_parser
from tests.support.commands import build, call, python
from tests.support.runs import TINY

# Without the objective, which each rung sets itself.
SMALL = [option for option in TINY if not option.startswith("--objective")]


def test_the_ablation_trains_resumes_and_reports(built: Path, tmp_path: Path) -> None:
    tokens, output, held_out = tmp_path / "tokens", tmp_path / "ablation", tmp_path / "held_out"
    shutil.copytree(built / "held_out", held_out)
    build("corpus", "--input", str(built / "train.txt"), "--vocab", str(built / "vocab.txt"), "--output", str(tokens))
    options = [*SMALL, f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={held_out}"]
    options += ["--trainer.max_steps=8", "--trainer.eval_every=4", "--trainer.eval_sequences=20"]
    command = ["-m", "ernie_gram.run_ablation", "--output", str(output), "--jobs", "2", "--token_corpus", str(tokens)]
    first = python(*command, *options, "--rungs", "token", "cnp")
    assert first.returncode == 0, first.stderr
    trained = (output / "cnp_1" / "step_8" / "model.safetensors").stat().st_mtime_ns
    done = python(*command, *options, "--rungs", "token", "contiguous", "cnp")
    assert done.returncode == 0, done.stderr
    assert "3 runs, 2 finished before" in done.stdout
    assert (output / "cnp_1" / "step_8" / "model.safetensors").stat().st_mtime_ns == trained
    other = call(main, *command[2:], *options, "--rungs", "cnp", "--trainer.eval_sequences=30")
    assert other.returncode == 2
    assert "was evaluated on other text" in other.stderr
    shutil.rmtree(held_out)
    shutil.copytree(built / "corpus", held_out)
    other = call(main, *command[2:], *options, "--rungs", "cnp")
    assert other.returncode == 2
    assert "was evaluated on other text" in other.stderr
    with (output / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["rung"] for row in rows] == ["token", "contiguous", "cnp"]
    for row in rows:
        logged = [record for record in read_log(output / f"{row['rung']}_1") if record["kind"] == "eval"]
        assert [record["step"] for record in logged] == [0, 4, 8]
        assert float(row["ngram_perplexity"]) == logged[-1]["ngram_perplexity"] > 1
    assert "#4 #5 + comprehensive prediction" in (output / "table.md").read_text()
    assert (output / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_shows_mean_and_range_over_the_seeds(tmp_path: Path) -> None:
    options = ["--trainer.max_steps=8", "--optimizer.warmup_steps=2"]
    runs = plan(tmp_path, ["explicit", "full"], [1, 2], None, options)
    result = {"perplexity": 10.0, "accuracy": 0.25, "steps": 5, "seconds_per_step": 2.0}
    finished: list[tuple[PlannedRun, Result]] = [
        (run, result | {"ngram_perplexity": 100.0 * run.seed}) for run in runs if run.rung == "explicit"
    ]
    finished.append((runs[1], result | {"ngram_perplexity": 100.0, "seconds_per_step": 3.0}))
    text = markdown(finished)
    assert "5 steps each, seeds 1, 2." in text
    assert "| explicit | #5 explicit n-gram masking | 150 (100 - 200) | 10 (10 - 10) | 25.0% (25.0% - 25.0%) |" in text
    assert "| 2.00 s (1.00 x) |" in text
    assert "| 100 | 10 | 25.0% | 3.00 s (1.50 x) |" in text


def test_invalid_options_are_refused_before_any_training(built: Path, tmp_path: Path) -> None:
    command = ["--output", str(tmp_path / "ablation")]
    valid = [*SMALL, f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={built / 'held_out'}"]
    for options, message in (
        (["--rungs", "fuller"], "invalid choice: 'fuller'"),
        (["--jobs", "0"], "argument --jobs: '0': expected an integer of at least 1"),
        (["--trainer.max_stpes=8"], "did you mean trainer.max_steps?"),
        (["--token_corpus", "nowhere"], "nowhere: no corpus there"),
        (["--rungs", "full", "--paths.held_out=null"], "paths.held_out: must be given"),
        (["--rungs", "token", "--token_corpus", str(built / "corpus")], "corpus has n-grams; give one made without"),
        (["--rungs", "full", "--config", "conf/pretrain/demo.yaml"], "--config: not among the options for every run"),
        (["--rungs", "full", "--output", str(tmp_path / "ablation" / "a")], f"no folder {tmp_path / 'ablation'};"),
    ):
        done = call(main, *command, *valid, "--trainer.max_steps=8", *options)
        assert done.returncode == 2
        assert message in done.stderr.splitlines()[-1]
        assert not (tmp_path / "ablation").exists()


def test_a_run_that_another_process_trains_is_refused(built: Path, tmp_path: Path) -> None:
    output = tmp_path / "ablation"
    paths = [f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={built / 'held_out'}"]
    output.mkdir()
    with lock_output(output / "explicit_1"):
        busy = call(main, "--output", str(output), "--rungs", "explicit", *SMALL, *paths)
    assert (busy.returncode, busy.stdout) == (1, "")
    assert "explicit_1 is in use by process" in busy.stderr


def test_the_command_of_the_readme_without_corpora_says_which_it_needs_and_how_to_build_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for rungs, paths in ((list(RUNGS), ("corpus", "token_corpus", "held_out")), (["full"], ("corpus", "held_out"))):
        done = call(main, "--output", "ablation", "--rungs", *rungs)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"error: {', '.join(f'data/en/{path}' for path in paths)}: no corpus there. ")
        parser = build_parser()
        commands = line.partition("To build them: ")[2].split("; ")
        outputs = [str(parser.parse_args(shlex.split(command)[1:]).output) for command in commands]
        assert outputs == ["vocab.txt", "lexicon.tsv", *(f"data/en/{path}" for path in paths)]
        assert all(option in line for option in ("--paths.corpus", "--paths.held_out"))
        assert ("--token_corpus" in line) == ("token" in rungs)
    assert list(tmp_path.iterdir()) == []
