"""Run parts of the model as static programs in the process of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from ernie_gram.distributed.device import current_place
from ernie_gram.distributed.world import World, start_world  # import before Paddle: sets the number of threads
from tests.support.commands import Done, call

import paddle  # isort: skip

from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.job import PretrainNetwork
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.pretraining.terms.catalog import sparse_parameters
from ernie_gram.training.program import Program, build_training

Arrays = dict[str, np.ndarray]


@contextmanager
def fresh_scope(device: str = "cpu") -> Iterator[paddle.static.Executor]:
    """Yield an executor in a new scope, which holds no parameters of other tests."""
    place = start_world(device).place
    with paddle.static.scope_guard(paddle.static.Scope()):
        yield paddle.static.Executor(place)


def call_in_scope(main: Callable[[], None], *arguments: Any, stdin: bytes | None = None) -> Done:
    """Run a command's `main` in this process, as `call`, in a new scope."""
    with fresh_scope():
        return call(main, *map(str, arguments), stdin=stdin)


@contextmanager
def fresh_program(
    device: str = "cpu",
) -> Iterator[tuple[paddle.static.Executor, paddle.static.Program, paddle.static.Program]]:
    """Yield an executor in a new scope, and a new program and its startup program, to which operations are added."""
    with fresh_scope(device) as executor:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            yield executor, main, startup


def run(
    build: Callable[[dict[str, paddle.Tensor]], list[paddle.Tensor]], feeds: Arrays, seed: int = 1
) -> tuple[list[np.ndarray], Arrays]:
    """Build a program, run it once, and return the fetched arrays and the parameters by name.

    All dimensions of the feeds are left open. `seed` determines the initial values. Noise is added to every parameter,
    because a bias of 0 or a LayerNorm scale of 1 would hide errors.
    """
    with fresh_program() as (executor, main, startup):
        inputs = {
            name: paddle.static.data(name, [None] * value.ndim, str(value.dtype)) for name, value in feeds.items()
        }
        fetches = build(inputs)
        paddle.seed(seed)
        executor.run(startup)
        random = np.random.default_rng(seed)
        parameters: Arrays = {}
        scope = paddle.static.global_scope()
        for parameter in main.global_block().all_parameters():
            tensor = scope.find_var(parameter.name).get_tensor()
            value = np.array(tensor) + 0.1 * random.standard_normal(tensor.shape()).astype("float32")
            tensor.set(value, executor.place)
            parameters[parameter.name] = value
        return executor.run(main, feed=feeds, fetch_list=fetches), parameters


def training_program(config: PretrainConfig, sizes: CorpusSizes) -> Program:
    """Build the program that the trainer runs, for one process."""
    world = World(0, 1, current_place())
    return build_training(job_of(config, sizes), world)


def job_of(config: PretrainConfig, sizes: CorpusSizes, processes: int = 1, by_row: bool = True) -> Any:
    """Return what the programs of a training read of its Job."""
    return SimpleNamespace(
        network=PretrainNetwork(config, sizes, processes),
        optimizer=config.optimizer,
        trainer=config.trainer,
        rate_scale=None,
        sparse_parameters=sparse_parameters(config) if by_row else frozenset(),
    )
