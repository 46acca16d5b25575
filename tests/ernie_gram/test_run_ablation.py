"""The ablation's command: rungs alike but for what they ablate, a table and a picture of what they logged."""

from __future__ import annotations

import csv
import dataclasses
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ernie_gram.pretraining import ablation_plan
from ernie_gram.pretraining.ablation_plan import CONFIGS, RUNGS, plan
from ernie_gram.run.run_log import read_log
from ernie_gram.run_ablation import finish, main, markdown, table_rows
from reader.errors import InputError
from reader.system.resumable_folder import lock_folder
from tests.support.commands import ROOT, build, call, python
from tests.support.runs import TINY

# Rungs bring their objectives.
SMALL = [option for option in TINY if not option.startswith("--objective")]


def test_rungs_are_one_change_apart(tmp_path: Path) -> None:
    """The table of the paper's ablation: what each rung has, and nothing else between them."""
    jobs = {job.rung: job.config for job in plan(tmp_path, list(RUNGS), [1], "tokens", [])}
    # rung: explicit, query rows, generator, detection, relative position
    table = {
        "token": (False, False, False, False, False),
        "contiguous": (False, False, False, False, False),
        "explicit": (True, False, False, False, False),
        "cnp": (True, True, False, False, False),
        "enrm": (True, False, True, True, False),
        "both": (True, True, True, True, False),
        "full": (True, True, True, True, True),
    }
    for rung, config in jobs.items():
        objective = config.objective
        found = (objective.is_explicit, objective.has_queries, objective.has_generator, objective.rtd_weight > 0)
        assert (*found, config.model.use_relative_position) == table[rung]
        full = jobs["full"].objective
        weights = {key: value or getattr(full, key) for key, value in vars(objective).items() if "_weight" in key}
        same = dataclasses.replace(
            config,
            objective=dataclasses.replace(objective, masking="explicit", **weights),
            model=dataclasses.replace(config.model, use_relative_position=True),
            paths=jobs["full"].paths,
        )
        assert same == jobs["full"]
        assert config.paths.corpus == ("tokens" if rung == "token" else jobs["full"].paths.corpus)
        assert config.paths.output == str(tmp_path / f"{rung}_1")


@pytest.mark.parametrize(
    ("rung", "option"),
    [
        ("explicit", "objective.fine_weight=0.5"),
        ("full", "model.use_relative_position=false"),
        ("enrm", "objective.rtd_weight=0"),
    ],
)
def test_a_rung_stays_what_it_is(tmp_path: Path, rung: str, option: str) -> None:
    with pytest.raises(InputError, match=f"{option.partition('=')[0]}: makes {rung} another rung"):
        plan(tmp_path, list(RUNGS), [1], "tokens", [f"--{option}"])
    for job in plan(tmp_path, list(RUNGS), [1], "tokens", ["--objective.mask_fraction=0.2"]):
        assert job.config.objective.mask_fraction == 0.2


@pytest.mark.parametrize("changed", ["mask_fraction: 0.5", "output_bias: zero", "fine_weight: 7"])
def test_rungs_that_are_not_alike_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    for path in CONFIGS.iterdir():
        (tmp_path / path.name).write_text(path.read_text())
    cnp = (tmp_path / "cnp.yaml").read_text()
    assert "objective: {" in cnp
    (tmp_path / "cnp.yaml").write_text(cnp.replace("objective: {", f"objective: {{{changed}, "))
    monkeypatch.setattr(ablation_plan, "CONFIGS", tmp_path)
    with pytest.raises(InputError, match="differs from that of the other rungs"):
        plan(tmp_path, list(RUNGS), [1], "tokens", [])


def test_the_ladder_trains_resumes_and_reports(built: Path, tmp_path: Path) -> None:
    tokens, output, held_out = tmp_path / "tokens", tmp_path / "ladder", tmp_path / "held_out"
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


def test_the_table_gives_the_mean_and_the_range_of_the_seeds() -> None:
    rows: list[dict[str, float | int | str]] = [
        {
            "rung": "explicit",
            "seed": seed,
            "steps": 5,
            "ngram_perplexity": 100.0 * seed,
            "perplexity": 10.0,
            "accuracy": 0.25,
            "seconds_per_step": 2.0,
        }
        for seed in (1, 2)
    ]
    rows.append(rows[0] | {"rung": "full", "seconds_per_step": 3.0})
    text = markdown(rows)
    assert "5 steps each, seeds 1, 2." in text
    assert "| explicit | #5 explicit n-gram masking | 150 (100 - 200) | 10 (10 - 10) | 25.0% (25.0% - 25.0%) |" in text
    assert "| 2.00 s (1.00 x) |" in text
    assert "| 100 | 10 | 25.0% | 3.00 s (1.50 x) |" in text


def test_mistakes_come_before_any_training(built: Path, tmp_path: Path) -> None:
    command = ["--output", str(tmp_path / "ladder")]
    good = [*SMALL, f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={built / 'held_out'}"]
    for options, message in (
        (["--rungs", "fuller"], "invalid choice: 'fuller'"),
        (["--jobs", "0"], "--jobs: must be at least 1"),
        (["--trainer.max_stpes=8"], "did you mean trainer.max_steps?"),
        (["--token_corpus", "nowhere"], "nowhere: no corpus there"),
        (["--rungs", "full", "--paths.held_out=null"], "paths.held_out: must be given"),
        (["--rungs", "token", "--token_corpus", str(built / "corpus")], "corpus has n-grams; give one made without"),
        (["--rungs", "full", "--config", "conf/pretrain/demo.yaml"], "--config: not for the ablation"),
    ):
        done = call(main, *command, *good, "--trainer.max_steps=8", *options)
        assert done.returncode == 2
        assert message in done.stderr.splitlines()[-1]
        assert not (tmp_path / "ladder").exists()


def test_a_rung_that_fails_is_named(built: Path, tmp_path: Path) -> None:
    output = tmp_path / "ladder"
    options = [*SMALL, f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={built / 'held_out'}"]
    options += ["--trainer.max_steps=8", "--trainer.save_every=4", "--optimizer.learning_rate=1e30"]
    done = python("-m", "ernie_gram.run_ablation", "--output", str(output), "--rungs", "explicit", *options)
    assert done.returncode == 2
    assert f"{output / 'explicit_1' / 'console.txt'}: the run failed: error: " in done.stderr.splitlines()[-1]
    job = plan(output, ["explicit"], [1], None, ["--trainer.max_steps=8", "--optimizer.warmup_steps=2"])[0]
    with (output / "explicit_1" / "console.txt").open("a") as console:
        console.write("LAUNCH INFO 2026-11-21 Exit code 2\n")
    with pytest.raises(InputError, match=r"console\.txt: the run failed: error: step"):
        finish(job, 2)
    with pytest.raises(InputError, match="unknown key"):
        plan(output, ["full"], [1], None, ["--nonsense=3"])
    assert table_rows([]) == []


def test_stopped_it_stops_what_it_started(built: Path, tmp_path: Path) -> None:
    output = tmp_path / "ladder"
    options = [*SMALL, f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={built / 'held_out'}"]
    command = [sys.executable, "-m", "ernie_gram.run_ablation", "--output", str(output), "--rungs", "explicit"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([*command, *options, "--trainer.max_steps=3000"], cwd=ROOT, env=environment) as ladder:
        while ladder.poll() is None and not read_log(output / "explicit_1"):
            time.sleep(0.05)
        ladder.terminate()
    assert ladder.returncode == 143
    # Nobody trains there any more.
    lock = lock_folder(output / "explicit_1")
    assert lock is not None
    lock.close()
