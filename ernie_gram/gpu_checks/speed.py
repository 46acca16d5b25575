"""How fast steps of conf/pretrain/base_en_16g.yaml are on this GPU, and how much memory they take.

Batches are random, of full sequences, for a vocabulary of 30,522 tokens and a lexicon of 300,000 n-grams.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

# isort: off
from ernie_gram.distributed.world import World, start_world  # before Paddle: it sets the number of threads

import paddle
# isort: on

from ernie_gram.config.loading import load_config
from ernie_gram.distributed.device import gpu_number
from ernie_gram.distributed.measure import allocated_peak, matmul_peak
from ernie_gram.gpu_checks.kernels import precisions
from ernie_gram.gpu_checks.outcome import Failed, Figures, Passed, Setup, Skipped, require
from ernie_gram.planning.memory import rank_memory
from ernie_gram.planning.prediction import largest_batch
from ernie_gram.planning.sizes import assumed_shape
from ernie_gram.planning.trial_step import random_batch
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.job import PretrainNetwork
from ernie_gram.pretraining.operations import step_flops
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.training.program import Program, build_training
from reader.batches.fields import Batch
from reader.system.installation import CONF

CONFIG = CONF / "pretrain" / "base_en_16g.yaml"
SIZES, QUICK_SIZES = CorpusSizes(30522, 300_000), CorpusSizes(1000, 600)
QUICK = (
    *("--model.hidden_size=64", "--model.num_hidden_layers=1", "--model.num_attention_heads=4"),
    *("--data.max_seq_len=64", "--trainer.micro_batch=8"),
)
TOKENS_PER_UNIT = 1.9
# The share of the GPU's memory that is left for its context, libraries and the allocator's unused memory.
FREE = 0.1
WARM_STEPS, SINGLE_STEPS, STEPS = 2, 5, 5
QUICK_SECONDS, SECONDS = 0.1, 2.0
# Beyond the prediction: workspaces of libraries.
MEMORY_TOLERANCE, WORKSPACES = 1.15, 256 << 20
# The search for the largest micro-batch: it begins with this share of the predicted one, and grows so often.
FIRST_SHARE, GROWTH, TRIALS = 0.8, 1.1, 5


@dataclass(frozen=True)
class Trial:
    """A training program of the base model, which has made its first steps.

    Attributes:
        config, sizes, shape: for one process; the whole batch is one micro-batch.
        first_step: seconds, in which Paddle prepares the program.
        allocated: bytes at the peak of these steps.
    """

    config: PretrainConfig
    sizes: CorpusSizes
    shape: BatchShape
    program: Program
    executor: paddle.static.Executor
    scope: paddle.base.core._Scope
    first_step: float
    allocated: int

    @property
    def predicted(self) -> int:
        """Bytes that preflight predicts."""
        return predicted_memory(self.config, self.sizes, self.shape.sequences)

    def run(self, batch: Batch) -> None:
        """Start a step; the GPU may not have finished it at the return."""
        with paddle.static.scope_guard(self.scope):
            self.program.step(self.executor, batch)

    def batch(self, sequences: int) -> Batch:
        """Return a random batch of this many sequences."""
        return random_batch(self.config, self.sizes, replace(self.shape, sequences=sequences))


def base_config(setup: Setup, precision: str, *more: str) -> tuple[PretrainConfig, CorpusSizes]:
    """Return the settings of the base model, or in quick checks of a small one, and the sizes of its vocabulary."""
    options = [f"--config={CONFIG}", f"--optimizer.precision={precision}", *(QUICK if setup.quick else ()), *more]
    return load_config(PretrainConfig, options, "gpu_check", "", {})[0], QUICK_SIZES if setup.quick else SIZES


@cache
def trial(setup: Setup, precision: str) -> Trial:
    """Return the trial with the micro-batch of the settings, or with the largest that fits as predicted."""
    config, sizes = base_config(setup, precision)
    world = start_world("gpu", precision)
    memory = _gpu_memory() * (1 - FREE)
    fitting = largest_batch(partial(predicted_memory, config, sizes), memory)
    sequences = min(config.trainer.micro_batch or 1, fitting)
    if not sequences:
        raise Failed(f"no sequence of the base model fits into {_gib(int(memory))}")
    return started_trial(config, sizes, sequences, world)


def started_trial(config: PretrainConfig, sizes: CorpusSizes, sequences: int, world: World) -> Trial:
    """Build the program of a batch of this many sequences, and make its first steps."""
    config = of_batch(config, sequences)
    network = PretrainNetwork(config, sizes, 1)
    rate = config.optimizer.learning_rate
    program = build_training(network, config.optimizer, lambda step: rate, World(0, 1, world.place))
    executor, scope = paddle.static.Executor(world.place), paddle.static.Scope()
    with paddle.static.scope_guard(scope):
        executor.run(program.startup)
    shape = assumed_shape(config, sequences, TOKENS_PER_UNIT)
    made = Trial(config, sizes, shape, program, executor, scope, 0.0, 0)
    seconds = [_seconds(partial(made.run, made.batch(sequences))) for _ in range(WARM_STEPS)]
    return replace(made, first_step=seconds[0], allocated=allocated_peak(world))


def of_batch(config: PretrainConfig, sequences: int) -> PretrainConfig:
    """Return the settings of a batch that one process holds at a time."""
    trainer = replace(config.trainer, micro_batch=None)
    return replace(config, data=replace(config.data, batch_size=sequences), trainer=trainer)


def predicted_memory(config: PretrainConfig, sizes: CorpusSizes, sequences: int) -> int:
    """Return the bytes that preflight predicts for one process and a batch of this many sequences."""
    shape = assumed_shape(config, sequences, TOKENS_PER_UNIT)
    return rank_memory(of_batch(config, sequences), sizes, shape, 1).total


def memory(setup: Setup) -> Passed:
    """Compare the memory of a step in float32 with the prediction of preflight."""
    made = trial(setup, "float32")
    figures: Figures = {"allocated": made.allocated, "predicted": made.predicted, "sequences": made.shape.sequences}
    said = f"{_gib(made.allocated)} for {made.shape.sequences} sequences in float32, preflight: {_gib(made.predicted)}"
    require(made.allocated <= MEMORY_TOLERANCE * made.predicted + WORKSPACES, said, figures)
    return Passed(said, figures)


def speed(setup: Setup) -> Passed:
    """Measure steps in float32, as the settings have it."""
    return _speed(setup, "float32")


def speed_16_bits(setup: Setup) -> Passed:
    """Measure steps in bfloat16, or in float16 where the GPU lacks bfloat16."""
    return _speed(setup, next(each for each in ("bfloat16", "float16") if each in precisions()))


def _speed(setup: Setup, precision: str) -> Passed:
    made = trial(setup, precision)
    figures = measured(made)
    figures["precision"] = precision
    figures["peak"] = matmul_peak(made.executor, precision, QUICK_SECONDS if setup.quick else SECONDS)
    figures["share_of_peak"] = figures["flops"] / (figures["step_ms"] / 1e3 * figures["peak"])
    return Passed(
        f"{precision}, {made.shape.sequences} sequences: host {figures['host_ms']:.0f} ms, until the GPU has finished "
        f"{figures['device_ms']:.0f} ms, {figures['tokens_per_second']:,.0f} tokens/s, {figures['share_of_peak']:.0%} "
        f"of {figures['peak'] / 1e12:.1f} TFLOP/s; first step {figures['first_step_s']:.0f} s",
        figures,
    )


def measured(made: Trial) -> Figures:
    """Return the times of steps.

    host_ms is the time until the call of a step returns, device_ms that until the GPU has finished it, of steps one
    after the other; step_ms that of one of many steps, between which nobody waits for the GPU.
    """
    batch = made.batch(made.shape.sequences)
    hosts: list[float] = []

    def step() -> None:
        hosts.append(_seconds(partial(made.run, batch), waits=False))

    devices = [_seconds(step) for _ in range(SINGLE_STEPS)]

    def steps() -> None:
        for _ in range(STEPS):
            made.run(batch)

    whole = _seconds(steps) / STEPS
    return {
        "sequences": made.shape.sequences,
        "host_ms": 1e3 * statistics.median(hosts),
        "device_ms": 1e3 * statistics.median(devices),
        "step_ms": 1e3 * whole,
        "tokens_per_second": made.shape.sequences * made.config.data.max_seq_len / whole,
        "flops": sum(step_flops(made.config, made.sizes, made.shape).values()),
        "first_step_s": made.first_step,
    }


def micro_batch(setup: Setup) -> Passed:
    """Find the largest micro-batch that a step in float32 holds, from the predicted one."""
    if setup.quick:
        raise Skipped("--quick: the micro-batch would fill the GPU's memory")
    made, total = trial(setup, "float32"), _gpu_memory()
    predicted = largest_batch(partial(predicted_memory, made.config, made.sizes), total)
    largest = largest_that_runs(partial(_fits, made), made.shape.sequences, int(predicted * FIRST_SHARE))
    figures: Figures = {"largest": largest, "predicted": predicted, "memory": total}
    said = f"{largest} sequences in float32; predicted from the memory of the GPU: {predicted}"
    require(largest * MEMORY_TOLERANCE >= predicted, said, figures)
    return Passed(said, figures)


def largest_that_runs(fits: Callable[[int], bool], known: int, first: int) -> int:
    """Return the largest number that fits of `known` and of TRIALS numbers from `first`, each a tenth larger.

    It ends with the first that does not fit: what a failed step has allocated would stay, and make others fail.
    """
    largest, tried = known, max(known + 1, first)
    for _ in range(TRIALS):
        if not fits(tried):
            break
        largest, tried = tried, max(tried + 1, int(tried * GROWTH))
    return largest


def _fits(made: Trial, sequences: int) -> bool:
    paddle.device.cuda.empty_cache()
    try:
        _seconds(partial(made.run, made.batch(sequences)))
    except (MemoryError, RuntimeError, SystemError) as error:
        if "out of memory" not in str(error).lower():
            raise
        return False
    return True


def _seconds(action: Callable[[], object], waits: bool = True) -> float:
    """Return the seconds of an action, of an idle GPU; `waits` is whether until the GPU has finished."""
    paddle.device.cuda.synchronize()
    began = time.perf_counter()
    action()
    if waits:
        paddle.device.cuda.synchronize()
    return time.perf_counter() - began


def _gpu_memory() -> int:
    return int(paddle.device.cuda.get_device_properties(gpu_number()).total_memory)


def _gib(number: int) -> str:
    return f"{number / 2**30:.2f} GiB"
