"""Micro-batches: their update is that of the whole batch, on one and on two processes, and a resumed run repeats it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ernie_gram.distributed.world import start_world  # import before Paddle: sets the number of threads
from ernie_gram.pretraining.job import PretrainNetwork
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.run import checkpoint
from ernie_gram.run.run_log import METERS, read_log
from ernie_gram.training.accumulation import Updater
from ernie_gram.training.program import open_program
from reader.batches.feeder import Feeder, Masking
from reader.corpus.memmap import Corpus
from tests.support.commands import ROOT, python
from tests.support.objectives import OBJECTIVES, as_options, load
from tests.support.runs import NO_DROPOUT, TINY, evaluations, options, pretrain
from tests.support.static_programs import fresh_scope
from tests.support.toy_classifier import BATCH_SIZE, batches, toy_job

STEPS = 10
ONE_LAYER = "--model.num_hidden_layers=1"
SETTINGS = [f"--trainer.max_steps={STEPS}", ONE_LAYER, *NO_DROPOUT]


def training_records(output: Path) -> list[dict[str, float]]:
    """Return what was logged in training: numbers except meters. A skipped update has no gradient norm."""
    left_out = {"kind", "sent_bytes", *METERS}
    records = [record for record in read_log(output) if record["kind"] == "train"]
    return [{key: record[key] for key in record.keys() - left_out} for record in records]


def assert_equal_runs(found: Path, expected: Path, name: str = f"step_{STEPS}") -> None:
    for read in (checkpoint.load_model, checkpoint.load_optimizer):
        arrays, others = read(found / name), read(expected / name)
        assert arrays.keys() == others.keys()
        for key, values in arrays.items():
            assert np.abs(values - others[key]).max() < 1e-5, key
    for record, other in zip(training_records(found), training_records(expected), strict=True):
        assert record == pytest.approx(other, rel=1e-4)


def test_two_processes_with_unequal_micro_batches_equal_one_process(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ranks have 7 and 8 rows, in 3 micro-batches each. Both skip the same updates while the loss scale falls."""
    # Micro-batches draw other samples, so the generator's best guess takes their place, as in train_and_dump.py.
    monkeypatch.setattr("ernie_gram.kernels.classes.draw", lambda p, *others: p.argmax(-1, others[-1]))
    more = [*SETTINGS, *as_options("full"), "--data.batch_size=15", f"--optimizer.loss_scale={2.0**66:.0f}"]
    more.append("--trainer.eval_sequences=30")
    alone = pretrain(built, tmp_path / "alone", *more).ok()
    skipped = [line for line in alone.stdout.splitlines() if "update skipped" in line]
    assert 1 <= len(skipped) <= STEPS - 4
    more = options(built, tmp_path / "together", *more, "--trainer.micro_batch=3")
    # With Paddle's launcher, for once.
    launcher = ["-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", str(tmp_path / "log")]
    command = [*launcher, str(ROOT / "tests/support/train_and_dump.py"), *more]
    python(*command, cwd=tmp_path, DUMP=str(tmp_path)).ok()
    first, second = (np.load(tmp_path / name) for name in ("0.npz", "1.npz"))
    assert all(np.array_equal(first[name], second[name]) for name in first.files)
    assert_equal_runs(tmp_path / "together", tmp_path / "alone")
    for one, two in zip(evaluations(tmp_path / "alone"), evaluations(tmp_path / "together"), strict=True):
        assert one.pop("kind") == two.pop("kind") == "eval"
        assert one == pytest.approx(two, rel=1e-4)
    states = [checkpoint.load_state(tmp_path / name / f"step_{STEPS}").guard for name in ("alone", "together")]
    assert states[0] == states[1]
    assert states[0]["skipped"] == len(skipped)
    bias = checkpoint.load_model(tmp_path / "together" / f"step_{STEPS}")["encoder_layer_0_ffn_fc_0.b_0"]
    assert np.abs(bias).max() > 1e-3  # it started at 0


def test_each_micro_batch_of_a_step_is_seeded_by_its_index(tmp_path: Path) -> None:
    world, seeds = start_world("cpu"), list[tuple[int, ...]]()
    with fresh_scope() as executor:
        updater = Updater(toy_job(tmp_path, micro_batch=BATCH_SIZE // 4), world)
        updater.initialise(executor)
        updater.step(executor, next(batches(0, world, steps=4)), lambda *numbers: seeds.append(numbers))
    assert seeds == [(0,), (1,), (2,), (3,)]


@pytest.mark.parametrize("rung", ["contiguous", "full"])
def test_rows_counted_in_a_batch_are_those_that_the_losses_count(corpus: Corpus, rung: str) -> None:
    config = load(*TINY, *as_options(rung))
    objective = OBJECTIVES[rung]
    masking = Masking(objective.is_explicit, objective.mask_fraction, 1, objective.has_queries)
    batch = Feeder(corpus, 32, masking).batch(np.arange(5), np.zeros(5, np.int64))
    network = PretrainNetwork(config, CorpusSizes(corpus.info.num_tokens, corpus.info.num_ngrams), 1)
    with fresh_scope() as executor:
        with open_program(network.fields) as opened:
            program = opened.finish({term.name: term.count for term in network.losses(opened.feeds)})
        executor.run(program.startup)
        counted = program.run(executor, batch)
    assert [float(count) for count in counted.values()] == network.row_counts(batch)
