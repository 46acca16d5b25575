"""Training and exports on a GPU give the numbers of a CPU, in each precision and after resuming.

`make gpu-check` sets NVIDIA_TF32_OVERRIDE=0: without it, the operands of float32 products have 11 bits on an Ampere GPU
or later.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest

from ernie_gram.distributed.device import check_device, gpu_number, use_device, visible_gpus
from ernie_gram.distributed.world import start_world
from ernie_gram.formats.registry import read_model
from ernie_gram.inference.export import export_model
from ernie_gram.pretraining.chunked_softmax import LazyLogits, cross_entropy
from reader.batches import fields
from reader.errors import InputError
from tests.gpu.runs import FLOAT32, HALF, STEPS, assert_equal_runs, parameters, steps_of, trained
from tests.support.exported_models import run_exported
from tests.support.static_programs import fresh_program

pytestmark = pytest.mark.gpu

# An objective that draws samples, with dropout.
DRAWING = "full"
DROPOUT = ("--model.hidden_dropout_prob=0.1", "--model.attention_probs_dropout_prob=0.1")
CLASSES, ROWS, DRAWS = 3000, 4000, 25


def test_the_device_is_there_and_adds_up_numbers() -> None:
    check_device("gpu")
    number = gpu_number()
    memory = paddle.device.cuda.get_device_properties(number).total_memory / 2**30
    capability = ".".join(map(str, paddle.device.cuda.get_device_capability(number)))
    print(f"{visible_gpus()} x {paddle.device.cuda.get_device_name(number)}, {capability}, {memory:.0f} GiB")
    print(f"Paddle {paddle.version.full_version} for CUDA {paddle.version.cuda()}, NCCL {paddle.version.nccl()}")
    with fresh_program("gpu") as (executor, program, _):
        total = paddle.ones([1 << 20]).sum()
        assert executor.run(program, fetch_list=[total])[0] == 1 << 20


def require_precision(precision: Any) -> None:
    """Skip a test if this GPU lacks a precision."""
    try:
        check_device("gpu", precision)
    except InputError as error:
        pytest.skip(str(error))


def test_ten_steps_in_float32_are_those_of_a_cpu(folder: Path) -> None:
    assert_equal_runs(trained(folder, "gpu", "gpu"), trained(folder, "cpu", "cpu"), FLOAT32)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_ten_steps_in_half_precision_are_near_those_in_float32_on_a_cpu(folder: Path, precision: str) -> None:
    require_precision(precision)
    # Small enough for no overflow, which would skip an update.
    scale = ["--optimizer.loss_scale=1024"] if precision == "float16" else []
    output = trained(folder, precision, "gpu", f"--optimizer.precision={precision}", *scale)
    assert_equal_runs(output, trained(folder, "cpu", "cpu"), HALF, by_name=False)


def test_updates_that_overflow_are_skipped_until_the_scale_of_the_loss_has_fallen(folder: Path) -> None:
    require_precision("float16")
    scale, steps = 2**66, 70  # it halves at each overflow; float16 needs fewer than 66 halvings
    settings = (f"--optimizer.loss_scale={scale}", f"--trainer.max_skipped={steps}")
    output = trained(folder, "overflow", "gpu", "--optimizer.precision=float16", *settings, steps=steps)
    records = steps_of(output)
    assert all("loss" in record for record in records)
    assert (records[0]["loss_scale"], records[0]["skipped"]) == (scale / 2, 1)
    assert 0 < records[-1]["skipped"] < len(records) == steps
    assert all(np.isfinite(array).all() for array in parameters(output).values())


def test_recompute_changes_nothing_with_dropout_and_samples(folder: Path) -> None:
    plain = trained(folder, DRAWING, "gpu", *DROPOUT, rung=DRAWING)
    again = trained(folder, "recompute", "gpu", *DROPOUT, "--trainer.recompute=true", rung=DRAWING)
    assert_equal_runs(again, plain, FLOAT32)


def test_a_run_resumes_on_a_cpu_and_on_a_gpu_again(folder: Path) -> None:
    for device, until in (("gpu", STEPS // 3), ("cpu", 2 * STEPS // 3), ("gpu", STEPS)):
        output = trained(folder, "resumed", device, steps=until)
    assert_equal_runs(output, trained(folder, "gpu", "gpu"), FLOAT32)


@pytest.mark.parametrize("outputs", ["encoder", "fill_mask"])
def test_an_exported_program_computes_on_a_gpu_what_it_computes_on_a_cpu(folder: Path, outputs: str) -> None:
    model, target = read_model(trained(folder, "gpu", "gpu")), folder / f"exported_{outputs}"
    export_model(model, outputs, target, start_world("gpu"))
    lengths = np.array([19, 3, 24])
    batch = {
        fields.INPUT_IDS.name: np.random.default_rng(1).integers(0, len(model.vocabulary), (3, 24)),
        fields.LENGTHS.name: lengths,
        fields.SLOTS.name: np.arange(3) * 24 + 1,
    }
    found = []
    for device in ("gpu", "cpu"):
        use_device(check_device(device))
        found.append(run_exported(target, batch))
    is_real = np.arange(24) < lengths[:, np.newaxis]
    for name, expected in found[1].items():
        # The values of padding slots have no meaning.
        chosen = is_real if name == "hidden" else slice(None)
        np.testing.assert_allclose(found[0][name][chosen], expected[chosen], atol=FLOAT32 * np.abs(expected).max())


def test_samples_of_the_generator_have_the_frequencies_of_their_probabilities() -> None:
    """Their chi-square statistic, and the count of the most frequent class, are within five standard deviations."""
    weights = 1.0 / np.arange(1, CLASSES + 1)
    probabilities = np.random.default_rng(1).permutation(weights / weights.sum())
    feed, runs = {"bias": np.log(probabilities).astype(np.float32)}, []
    with fresh_program("gpu") as (executor, program, _):
        bias = paddle.static.data("bias", [CLASSES], "float32")
        logits = LazyLogits(paddle.zeros([ROWS, 8]), (paddle.zeros([CLASSES, 8]),), bias)
        drawn = cross_entropy(logits, paddle.zeros([ROWS], "int64"), chunks=2, train=False, temperature=1).sampled
        for seed in (*range(DRAWS), 0):
            paddle.seed(seed)
            runs.append(executor.run(program, feed=feed, fetch_list=[drawn])[0])
    assert np.array_equal(runs[0], runs.pop())
    assert not np.array_equal(runs[0], runs[1])
    counts = np.bincount(np.concatenate(runs), minlength=CLASSES)
    assert len(counts) == CLASSES
    expected = probabilities * counts.sum()
    is_rare, most = expected < 20, int(np.argmax(expected))
    joined_counts = np.append(counts[~is_rare], counts[is_rare].sum())
    joined_expected = np.append(expected[~is_rare], expected[is_rare].sum())
    statistic, freedom = np.sum((joined_counts - joined_expected) ** 2 / joined_expected), len(joined_counts) - 1
    sigmas = (statistic - freedom) / np.sqrt(2 * freedom)
    print(f"chi-square: {sigmas:+.1f} standard deviations from its mean")
    assert abs(sigmas) < 5
    assert abs(counts[most] - expected[most]) < 5 * np.sqrt(expected[most])
