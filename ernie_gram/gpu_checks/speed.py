"""Measure the speed and the memory of training steps of conf/pretrain/base_en_16g.yaml on this GPU.

Batches are random, of full sequences, for a vocabulary of 30,522 tokens and a lexicon of 300,000 n-grams.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import paddle
from paddle.device import cuda

from ernie_gram.config.loading import load_config
from ernie_gram.distributed.device import MEMORY_EFFICIENT, check_device, gpu_number
from ernie_gram.distributed.measure import allocated_peak, matmul_peak
from ernie_gram.distributed.world import World, start_world
from ernie_gram.gpu_checks.check import Numbers, Setup, Skipped, require
from ernie_gram.gpu_checks.equal_numbers import HALF, compare, on_gpu
from ernie_gram.gpu_checks.kernels import precisions
from ernie_gram.gpu_checks.programs import SIZES, TOKENS_PER_UNIT, random_step
from ernie_gram.gpu_checks.runs import trained
from ernie_gram.planning.memory import rank_memory
from ernie_gram.planning.prediction import largest_batch
from ernie_gram.planning.sizes import assumed_shape
from ernie_gram.planning.trial_step import shortened
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import step_flops
from reader.errors import InputError
from reader.system.installation import CONF

CONFIG = CONF / "pretrain" / "base_en_16g.yaml"
QUICK_SIZES = CorpusSizes(1000, 600)
QUICK = (
    *("--model.hidden_size=64", "--model.num_hidden_layers=1", "--model.num_attention_heads=4"),
    *("--data.max_seq_len=64", "--trainer.micro_batch=8"),
)
# The share of the GPU's memory that is left for its context, libraries and the allocator's unused memory.
FREE = 0.1
WARM_STEPS, SINGLE_STEPS, STEPS = 2, 5, 5
QUICK_SECONDS, SECONDS = 0.1, 2.0
# Allowed beyond the prediction: a factor, and bytes for workspaces of libraries.
MEMORY_TOLERANCE, WORKSPACES = 1.15, 256 << 20
ATTENTION_SEQUENCES = 8


@dataclass(frozen=True)
class Trial:
    """A training program of the base model that has run its first steps.

    Attributes:
        config, sizes, shape: for one process; the whole batch is one micro-batch.
        step: starts a step; the GPU may not have finished it at the return.
        executor: of the steps.
        first_step: seconds of the first step, including Paddle's preparation of the program.
        allocated: bytes at the peak of these steps.
    """

    config: PretrainConfig
    sizes: CorpusSizes
    shape: BatchShape
    step: Callable[[], None]
    executor: paddle.static.Executor
    first_step: float
    allocated: int


def base_config(setup: Setup, precision: str, *more: str) -> tuple[PretrainConfig, CorpusSizes]:
    """Return the settings of the base model, or in quick checks of a small one, and the sizes of its vocabulary."""
    options = [f"--config={CONFIG}", f"--optimizer.precision={precision}", *(QUICK if setup.quick else ()), *more]
    return load_config(PretrainConfig, options)[0], QUICK_SIZES if setup.quick else SIZES


def fitting_trial(setup: Setup, precision: str) -> Trial:
    """Start a trial with the micro-batch of the settings, or with the largest that fits as predicted."""
    config, sizes = base_config(setup, precision)
    world = start_world("gpu", precision)
    memory = int(paddle.device.cuda.get_device_properties(gpu_number()).total_memory * (1 - FREE))
    fitting = largest_batch(partial(predicted_memory, config, sizes), memory)
    sequences = min(config.trainer.micro_batch or 1, fitting)
    require(sequences > 0, f"no sequence of the base model fits into {_gib(memory)}")
    return started_trial(config, sizes, sequences, world)


def started_trial(config: PretrainConfig, sizes: CorpusSizes, sequences: int, world: World) -> Trial:
    """Build the program for a batch of this many sequences, and run its first steps."""
    config = of_batch(config, sequences)
    program, batch = random_step(config, sizes, world)
    executor, scope = paddle.static.Executor(world.place), paddle.static.Scope()
    with paddle.static.scope_guard(scope):
        executor.run(program.startup)

    def step() -> None:
        with paddle.static.scope_guard(scope):
            program.step(executor, batch)

    (_, first_step), *_ = [_seconds(step) for _ in range(WARM_STEPS)]
    shape = assumed_shape(config, sequences, TOKENS_PER_UNIT)
    return Trial(config, sizes, shape, step, executor, first_step, allocated_peak(world))


def of_batch(config: PretrainConfig, sequences: int) -> PretrainConfig:
    """Return the settings with a batch of this many sequences, which one process computes at once."""
    trainer = replace(config.trainer, micro_batch=None)
    return replace(config, data=replace(config.data, batch_size=sequences), trainer=trainer)


def predicted_memory(config: PretrainConfig, sizes: CorpusSizes, sequences: int) -> int:
    """Return the bytes that preflight predicts for one process and a batch of this many sequences."""
    shape = assumed_shape(config, sequences, TOKENS_PER_UNIT)
    return rank_memory(of_batch(config, sequences), sizes, shape, 1, cpu=False).total


def memory(setup: Setup) -> str:
    """Compare the memory of a step in float32 with the prediction of preflight."""
    trial = fitting_trial(setup, "float32")
    sequences = trial.shape.sequences
    predicted = predicted_memory(trial.config, trial.sizes, sequences)
    setup.numbers.update(allocated=trial.allocated, predicted=predicted, sequences=sequences)
    said = f"{_gib(trial.allocated)} for {sequences} sequences in float32, preflight: {_gib(predicted)}"
    require(trial.allocated <= MEMORY_TOLERANCE * predicted + WORKSPACES, said)
    return said


def speed(setup: Setup) -> str:
    """Measure steps in float32, as the settings have it."""
    return _speed(setup, "float32")


def speed_16_bits(setup: Setup) -> str:
    """Measure steps in bfloat16, or in float16 where the GPU lacks bfloat16."""
    return _speed(setup, _half_precision())


def _half_precision() -> str:
    return next(each for each in ("bfloat16", "float16") if each in precisions())


def _speed(setup: Setup, precision: str) -> str:
    trial = fitting_trial(setup, precision)
    peak = matmul_peak(trial.executor, precision, QUICK_SECONDS if setup.quick else SECONDS)
    found = measured(trial)
    share = found["flops"] / (found["step_ms"] / 1e3 * peak)
    setup.numbers.update(found, precision=precision, peak=peak, share_of_peak=share)
    return (
        f"{precision}, {trial.shape.sequences} sequences: host {found['host_ms']:.0f} ms, until the GPU has finished "
        f"{found['device_ms']:.0f} ms, {found['tokens_per_second']:,.0f} tokens/s, {share:.0%} of {peak / 1e12:.1f} "
        f"TFLOP/s; first step {found['first_step_s']:.0f} s"
    )


def attention(setup: Setup) -> str:
    """Compare plain and memory-efficient attention: results of a small model, and times of a few layers of the base."""
    try:
        check_device("gpu", attention=MEMORY_EFFICIENT)
    except InputError as error:
        raise Skipped(str(error)) from error
    output = trained(setup, MEMORY_EFFICIENT, "gpu", f"--model.attention={MEMORY_EFFICIENT}")
    # This process may use TF32 (see check.py), but not the plain steps, if another check has run them.
    shown = compare(setup, output, on_gpu(setup), HALF, by_name=False)
    precision, times = _half_precision(), []
    world = start_world("gpu", precision)
    for kind in ("plain", MEMORY_EFFICIENT):
        config, sizes = shortened(*base_config(setup, precision, f"--model.attention={kind}"))
        # The peak is that of the process, and the tensors of the other kind are gone.
        cuda.reset_max_memory_allocated(gpu_number())
        trial = started_trial(config, sizes, ATTENTION_SEQUENCES, world)
        setup.numbers[kind] = {**measured(trial), "allocated": trial.allocated}
        del trial
        times.append(f"{setup.numbers[kind]['step_ms']:.0f} ms {kind.replace('_', '-')}")
    layers = config.model.num_hidden_layers
    return f"differ by {shown}; a step of {layers} layers in {precision}: {', '.join(times)}"


def measured(trial: Trial) -> Numbers:
    """Return the times of steps.

    host_ms is the time until the call of a single step returns, device_ms the time until the GPU has finished it;
    step_ms is the mean time of several steps without waiting for the GPU between them.
    """
    hosts, devices = zip(*(_seconds(trial.step) for _ in range(SINGLE_STEPS)), strict=True)
    whole = _seconds(trial.step, STEPS)[1] / STEPS
    sequences = trial.shape.sequences
    return {
        "sequences": sequences,
        "host_ms": 1e3 * statistics.median(hosts),
        "device_ms": 1e3 * statistics.median(devices),
        "step_ms": 1e3 * whole,
        "tokens_per_second": sequences * trial.config.data.max_seq_len / whole,
        "flops": sum(step_flops(trial.config, trial.sizes, trial.shape).values()),
        "first_step_s": trial.first_step,
    }


def _seconds(step: Callable[[], None], steps: int = 1) -> tuple[float, float]:
    """Run steps on an idle GPU; return the seconds until their calls have returned, and until it has finished."""
    paddle.device.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    returned = time.perf_counter()
    paddle.device.cuda.synchronize()
    return returned - began, time.perf_counter() - began


def _gib(number: int) -> str:
    return f"{number / 2**30:.2f} GiB"
