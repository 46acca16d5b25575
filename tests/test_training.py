"""Whole runs in processes of their own: ranks in step, kills survived, bad input refused."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from ernie_gram import checkpoint
from ernie_gram.runlog import Record, read_log
from reader.errors import InputError
from tests.conftest import OBJECTIVES, ROOT, TINY, python

NO_DROPOUT = ["--model.hidden_dropout_prob=0", "--model.attention_probs_dropout_prob=0"]


def options(built: Path, output: Path, *more: str) -> list[str]:
    paths = [f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={built / 'held_out'}", f"--paths.output={output}"]
    return [*TINY, *paths, *more]


def pretrain(built: Path, output: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "ernie_gram.pretrain", *options(built, output, *more))


def train_losses(output: Path) -> list[tuple[int, float, float]]:
    records = [record for record in read_log(output) if record["kind"] == "train"]
    return [(record["step"], record["loss"], record["grad_norm"]) for record in records]


def evaluations(output: Path) -> list[Record]:
    return [record for record in read_log(output) if record["kind"] == "eval"]


@pytest.fixture(scope="module")
def finished(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of an undisturbed run of 24 steps, with dropout."""
    output = tmp_path_factory.mktemp("finished") / "run"
    done = pretrain(built, output, "--trainer.max_steps=24", "--trainer.save_every=4", "--trainer.eval_every=12")
    assert done.returncode == 0, done.stderr
    return output


def launch(script: str, log: Path, *arguments: str) -> list[str]:
    """The command that starts two processes."""
    return [
        *(sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", str(log)),
        *(str(ROOT / script), *arguments),
    ]


@pytest.mark.parametrize("objective", ["cnp", "contiguous", "full"])
def test_two_processes_are_one_with_the_whole_batch(built: Path, tmp_path: Path, objective: str) -> None:
    # An odd batch: the ranks' shares differ.
    more = ["--trainer.max_steps=20", "--data.batch_size=7", *OBJECTIVES[objective], *NO_DROPOUT]
    for world in (1, 2):
        (tmp_path / str(world)).mkdir()
        arguments = options(built, tmp_path / f"run{world}", *more)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "DUMP": str(tmp_path / str(world))}
        command = [sys.executable, str(ROOT / "tests/train_and_dump.py"), *arguments]
        if world == 2:
            command = launch("tests/train_and_dump.py", tmp_path / "log", *arguments)
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr + done.stdout
    alone, first, second = (np.load(tmp_path / name) for name in ("1/0.npz", "2/0.npz", "2/1.npz"))
    for name in alone.files:
        assert np.array_equal(first[name], second[name]), name
    if objective == "full":
        return  # ranks draw samples of their own, so one process does not train on the same inputs
    for name in alone.files:
        assert np.abs(first[name] - alone[name]).max() < 1e-5, name
    moved = min(np.abs(alone[name]).max() for name in alone.files if name.endswith("ffn_fc_0.b_0"))
    assert moved > 1e-2  # these biases started at 0: there was something to be equal about
    for one, two in zip(evaluations(tmp_path / "run1"), evaluations(tmp_path / "run2"), strict=True):
        assert one.pop("kind") == two.pop("kind") == "eval"
        assert one == pytest.approx(two, rel=1e-4)


def start_and_kill(command: list[str], environment: dict[str, str], output: Path, step: int) -> None:
    """Start a run, and kill all its processes at once when it has logged a step beyond `step`."""
    process = subprocess.Popen(command, env=environment, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if any(record["step"] >= step for record in read_log(output)):
            break
        time.sleep(0.005)
    assert process.poll() is None, "the run ended before it could be killed"
    # The launcher's children have sessions of their own: find them by the run's output folder.
    pids = subprocess.run(["pgrep", "-f", str(output)], capture_output=True, text=True, check=False).stdout.split()
    for pid in {*map(int, pids), process.pid}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def test_a_killed_run_goes_on_as_if_nothing_had_been(built: Path, finished: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    more = ["--trainer.max_steps=24", "--trainer.save_every=4", "--trainer.eval_every=12"]
    command = [sys.executable, "-m", "ernie_gram.pretrain", *options(built, output, *more)]
    start_and_kill(command, {**os.environ, "PYTHONPATH": str(ROOT)}, output, step=10)
    saved = checkpoint.newest_whole(output)
    assert saved is not None
    resumed = pretrain(built, output, *more)
    assert resumed.returncode == 0, resumed.stderr
    assert f"resumes from {saved}" in resumed.stdout
    # To the last bit, dropout and evaluation included; and no record twice.
    assert train_losses(output) == train_losses(finished)
    assert evaluations(output) == evaluations(finished)
    ours, theirs = (checkpoint.load_model(path / "step_24") for path in (output, finished))
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_two_killed_processes_go_on(built: Path, tmp_path: Path) -> None:
    more = ["--trainer.max_steps=24", "--trainer.save_every=4"]
    losses = []
    for name in ("calm", "killed"):
        output = tmp_path / name
        command = launch("ernie_gram/pretrain.py", tmp_path / "log", *options(built, output, *more))
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        if name == "killed":
            start_and_kill(command, environment, output, step=10)
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr + done.stdout
        losses.append(train_losses(output))
    assert len(losses[0]) == 24
    np.testing.assert_allclose(np.array(losses[1]), np.array(losses[0]), rtol=1e-5)


@pytest.mark.parametrize(
    ("objective", "start"),
    [("explicit", "frequency"), ("explicit", "zero"), ("contiguous", "frequency"), ("full", "frequency")],
)
def test_learning_lowers_the_held_out_perplexity(built: Path, tmp_path: Path, objective: str, start: str) -> None:
    # With samples instead of [MASK]s to read, the main model needs longer.
    every = 100 if objective == "full" else 50
    more = [f"--trainer.max_steps={2 * every}", f"--trainer.eval_every={every}", "--data.batch_size=32"]
    done = pretrain(built, tmp_path / "run", *more, *OBJECTIVES[objective], f"--objective.output_bias={start}")
    assert done.returncode == 0, done.stderr
    first, middle, last = (record["perplexity"] for record in evaluations(tmp_path / "run"))
    by_frequency = evaluations(tmp_path / "run")[0]["frequency_perplexity"]
    assert last < middle < first
    if start == "zero":
        assert first > 1000  # about as many as there are units
    elif objective != "contiguous":
        assert first == pytest.approx(by_frequency, rel=0.1)
        assert last < 0.9 * by_frequency


def test_bfloat16_stays_close_to_float32(built: Path, tmp_path: Path) -> None:
    losses = []
    for precision in ("float32", "bfloat16"):
        output = tmp_path / precision
        # A rate at which rounding does not grow from step to step: what is compared is the arithmetic.
        more = ["--trainer.max_steps=200", "--trainer.eval_every=1000", "--optimizer.learning_rate=1e-3"]
        more += [f"--optimizer.precision={precision}", "--objective.output_bias=zero", *OBJECTIVES["cnp"]]
        done = pretrain(built, output, *more, *NO_DROPOUT)
        assert done.returncode == 0, done.stderr
        losses.append([loss for _, loss, _ in train_losses(output)])
    single, half = np.array(losses)
    assert single[-20:].mean() < 0.9 * single[:5].mean()  # it did train
    assert not np.array_equal(single, half)
    assert (np.abs(half / single - 1) < 0.02).all()


def test_checkpoints_rotate_and_hold_what_they_say(finished: Path) -> None:
    assert [path.name for path in checkpoint.checkpoints(finished)] == ["step_16", "step_20", "step_24"]
    state = checkpoint.load_state(finished / "step_20")
    assert (state.step, state.consumed) == (20, 160)
    assert state.learning_rate == pytest.approx(3e-3 * 4 / 22)
    moments = checkpoint.load_optimizer(finished / "step_20")
    assert {f"word_embedding{end}" for end in ("_moment1_0", "_moment2_0", "_beta1_pow_acc_0")} <= moments.keys()
    assert [path.name for path in finished.glob(".*")] == [".lock"]


def test_a_finished_run_has_nothing_to_do(built: Path, finished: Path, tmp_path: Path) -> None:
    output = Path(shutil.copytree(finished, tmp_path / "run"))
    before = train_losses(output)
    done = pretrain(built, output, "--trainer.max_steps=24", "--trainer.save_every=4", "--trainer.eval_every=12")
    assert done.returncode == 0
    assert "already at step 24" in done.stdout
    assert train_losses(output) == before


DAMAGES = {
    "truncated": lambda path: (path / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes()[:-9]),
    "altered": lambda path: (path / "state.json").write_text((path / "state.json").read_text().replace("24", "25")),
    "missing": lambda path: (path / "optimizer.safetensors").unlink(),
    "no checksums": lambda path: (path / "checksums.json").write_text("{}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_refused_and_the_last_whole_one_offered(
    built: Path, finished: Path, tmp_path: Path, damage: str
) -> None:
    output = Path(shutil.copytree(finished, tmp_path / "run"))
    DAMAGES[damage](output / "step_24")
    more = ["--trainer.max_steps=24", "--trainer.save_every=4", "--trainer.eval_every=12"]
    done = pretrain(built, output, *more)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "step_24" in line
    offer = f"--trainer.resume {output / 'step_20'}"
    assert offer in line
    if damage == "truncated":
        done = pretrain(built, output, *more, *offer.split())
        assert done.returncode == 0, done.stderr
        assert train_losses(output) == train_losses(finished)
        checkpoint.verify(output / "step_24")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--data.max_seq_len=30"], "data.max_seq_len: 32 there, 30 here"),
        (["--seed=2"], "seed: 1 there, 2 here"),
        (["--trainer.max_steps=30"], "optimizer.decay_steps: 24 there, 30 here"),
        (["--trainer.resume=never"], "trainer.resume: never, but"),
        (["--trainer.resume=nowhere"], "nowhere: no such checkpoint"),
        (["--data.batch_size=0"], "data.batch_size: must be positive"),
        (["--data.max_seq_len=8", "--paths.output=elsewhere"], "data.max_seq_len: 8 is too short"),
        (["--model.num_attention_heads=5"], "model.num_attention_heads: 5 heads do not divide"),
        (["--model.max_ngram_tokens=2"], "model.max_ngram_tokens: 2 is too few"),
        (["--objective.generator_weight=0"], "objective.rtd_weight: nothing is replaced without a generator"),
        (["--objective.coarse_weight=0"], "objective.coarse_weight: must be positive under explicit masking"),
        (["--objective.masking=contiguous"], "objective.coarse_weight: must be 0 under contiguous masking"),
        (["--objective.fine_weight=-1"], "objective.fine_weight: must not be negative"),
        (["--generator.num_attention_heads=2"], "generator.num_attention_heads: None there, 2 here"),
        (["--model.vocab_size=10"], "model.vocab_size: 10 is less than the 1000 tokens"),
        (["--paths.corpus=nowhere"], "nowhere: no corpus there"),
        (["--paths.corpus="], "paths.corpus: must be given"),
        (["--modle.hidden_size=8"], "command line: unknown key modle.hidden_size; did you mean model.hidden_size?"),
        (["--data.batch_size=many"], "command line: Parser key"),
        (["--trainer.device=gpu"], "trainer.device: gpu asked for"),
    ],
)
def test_bad_settings_are_one_line(built: Path, finished: Path, change: list[str], message: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    base = ["--trainer.max_steps=24", "--trainer.save_every=4", "--trainer.eval_every=12"]
    done = pretrain(built, finished, *base, *change)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert message in done.stderr.splitlines()[-1]
    assert not (ROOT / "elsewhere").exists()
    if change != ["--trainer.device=gpu"]:
        assert len(done.stderr.splitlines()) == 1
        assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before


def test_a_held_out_corpus_of_another_vocabulary_is_refused(built: Path, tmp_path: Path) -> None:
    other = tmp_path / "held_out"
    arguments = ["--input", str(built / "held_out.txt"), "--vocab", str(built / "vocab.txt"), "--cased"]
    assert python("-m", "reader.build", "corpus", *arguments, "--output", str(other)).returncode == 0
    done = pretrain(built, tmp_path / "run", f"--paths.held_out={other}")
    assert done.returncode == 2
    assert "paths.held_out" in done.stderr
    assert "another vocabulary" in done.stderr
    assert not (tmp_path / "run").exists()


def test_more_processes_than_rows_are_refused(built: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(ROOT / "run_pretrain.sh"), "conf/pretrain/demo.yaml", *options(built, tmp_path / "run")],
        cwd=ROOT,
        env={**os.environ, "NPROC": "9", "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "error: data.batch_size: 9 processes, but only 8 sequences in a batch; use fewer processes\n"


BREAK_AT_STEP_7 = """
import numpy as np
from ernie_gram import distributed, program
from ernie_gram.pretrain import main
from reader.errors import one_line_errors

plain_run, calls = program.Program.run, []

def run(self, executor, batch):
    fetched = plain_run(self, executor, batch)
    if "loss" in fetched:
        calls.append(1)
        if len(calls) == 7:
            fetched["WHICH"] = np.float32("nan")
    return fetched

program.Program.run = run
one_line_errors(main)
"""


@pytest.mark.parametrize("which", ["loss", "grad_norm"])
def test_a_loss_that_is_no_number_stops_the_run(built: Path, tmp_path: Path, which: str) -> None:
    output = tmp_path / "run"
    more = ["--trainer.max_steps=20", "--trainer.save_every=2", "--trainer.eval_every=1000"]
    done = python("-c", BREAK_AT_STEP_7.replace("WHICH", which), *options(built, output, *more))
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert line.startswith("error: step 7: ")
    assert "nan" in line
    assert f"The last checkpoint is {output / 'step_6'}." in line
    assert checkpoint.checkpoints(output)[-1] == output / "step_6"
    checkpoint.verify(output / "step_6")


def test_parameters_that_are_no_numbers_are_not_saved(tmp_path: Path) -> None:
    state = checkpoint.State(1, 8, 0.1, {}, {})
    with pytest.raises(InputError, match=r"step_1: not written, b holds"):
        checkpoint.save(tmp_path, state, {"a": np.ones(2), "b": np.array([1, np.inf])}, {}, keep=2)
    assert checkpoint.checkpoints(tmp_path) == []


def test_a_full_disk_is_one_line_and_costs_nothing_saved(built: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    more = ["--trainer.max_steps=8", "--trainer.save_every=4", "--trainer.eval_every=1000"]
    # No file may grow beyond 100 KB: the model takes more.
    limited = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); "
    limited += "from ernie_gram.pretrain import main; from reader.errors import one_line_errors; one_line_errors(main)"
    done = python("-c", limited, *options(built, output, *more))
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"error: {output / 'step_4'}: could not be written")
    assert not list(output.glob("*step_*"))
    assert pretrain(built, output, *more).returncode == 0
    checkpoint.verify(output / "step_8")


def test_a_folder_in_use_is_refused(built: Path, finished: Path) -> None:
    with (finished / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = pretrain(built, finished, "--trainer.max_steps=24", "--trainer.save_every=4", "--trainer.eval_every=12")
    assert done.returncode == 2
    assert "is in use by another process" in done.stderr


def test_an_evaluation_lost_to_a_kill_is_made_up_for(built: Path, finished: Path, tmp_path: Path) -> None:
    output = Path(shutil.copytree(finished, tmp_path / "run"))
    lines = (output / "log.jsonl").read_text().splitlines(keepends=True)
    assert '"eval"' in lines[-1]
    (output / "log.jsonl").write_text("".join(lines[:-1]))
    done = pretrain(built, output, "--trainer.max_steps=24", "--trainer.save_every=4", "--trainer.eval_every=12")
    assert done.returncode == 0
    assert read_log(output) == read_log(finished)


def test_the_log_outlives_a_cut_line(finished: Path, tmp_path: Path) -> None:
    lines = (finished / "log.jsonl").read_text()
    (tmp_path / "log.jsonl").write_text(lines + '{"kind": "tra')
    assert read_log(tmp_path) == read_log(finished) == [json.loads(line) for line in lines.splitlines()]
