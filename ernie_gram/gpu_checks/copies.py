"""Check that a training step copies nothing between the GPU and the host beyond what is listed here.

Each copy from the device makes the host wait. Paddle's log tells which operation copies: with the variables that
check.py sets for this process, the interpreter names each operation before and after it runs, and each copy of memory
has a line with its two places.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import paddle

from ernie_gram.distributed.world import World, start_world
from ernie_gram.gpu_checks.check import Setup, require
from ernie_gram.gpu_checks.kernels import STDERR, precisions, written_to
from ernie_gram.gpu_checks.programs import LAST_RUNG, LAYERS, pretraining_config, random_step
from ernie_gram.pretraining.sizes import CorpusSizes

# Operations that may copy, found in Paddle's sources.
# memcpy: whether an update is skipped, which AdamW's kernels read on the host (training.loss_scale).
FROM_DEVICE = ("memcpy",)
FEEDING = "before the first operation"
TO_DEVICE = (
    # The batch.
    *(FEEDING, "shadow_feed"),
    # Addresses of many operands; the host does not wait.
    *("concat", "stack", "add_n", "split", "unbind", "check_finite_and_unscale"),
    # The number of rows of a term, which follows from shapes.
    *("divide", "divide_grad"),
)
SEQUENCES = 4
SIZES = CorpusSizes(tokens=1000, ngrams=600)
# The first steps prepare the program.
STEPS = 3

_BEGIN = re.compile(r"^begin: RunInstructionBase OP id:\d+ name:(?:\w+\.)?(\w+)")
_PLACE = re.compile(r"^Before: Place\((\w+)")
_COPY = re.compile(r"memory::Copy (\d+) Bytes from Place\((\w+)[^)]*\) to Place\((\w+)[^)]*\)")
_TRANSFERS = ("memcpy_d2h", "memcpy_h2d")


@dataclass(frozen=True)
class StepLog:
    """The places and copies of the operations in Paddle's log of a step.

    Attributes:
        places: "cpu" or "gpu" -> operations that ran there.
        from_device, to_device: name of an operation -> its copies. If Paddle has inserted a copy before an operation,
            it counts as this operation's.
    """

    places: Counter[str]
    from_device: Counter[str]
    to_device: Counter[str]

    @classmethod
    def of(cls, text: str) -> StepLog:
        """Parse the log of a step; raises ValueError if no operations are found, for example in another format."""
        places, ways = Counter[str](), {"gpu to cpu": Counter[str](), "cpu to gpu": Counter[str]()}
        operation, inserted = FEEDING, Counter[str]()
        for line in text.splitlines():
            if begins := _BEGIN.search(line):
                operation = begins[1]
            elif ran := _PLACE.search(line):
                places[ran[1]] += 1
                if operation not in _TRANSFERS:
                    for way, count in inserted.items():
                        ways[way][operation] += count
                    inserted.clear()
            elif (copy := _COPY.search(line)) and (way := f"{copy[2]} to {copy[3]}") in ways:
                if operation in _TRANSFERS:
                    inserted[way] += 1
                else:
                    ways[way][operation] += 1
        if not places:
            raise ValueError(f"Paddle {paddle.__version__} logs no operations with GLOG_vmodule")
        return cls(places, *ways.values())

    def unexpected(self) -> list[str]:
        """Return what copies without being listed, such as "reshape: 3 from the device"."""
        return [
            f"{name}: {count} {way} the device"
            for way, found, expected in (("from", self.from_device, FROM_DEVICE), ("to", self.to_device, TO_DEVICE))
            for name, count in found.most_common()
            # "add_n_" works in place.
            if name.removesuffix("_") not in expected
        ]


def copies(setup: Setup) -> str:
    """Check a step of the full objective in each precision, and one with recompute."""
    world, bad = start_world("gpu"), []
    for precision, recompute in [*((each, False) for each in precisions()), ("float32", True)]:
        name = f"{LAST_RUNG}, {precision}" + ", recompute" * recompute
        log = StepLog.of(_logged_step(precision, recompute, world))
        setup.numbers[name] = {key: dict(found) for key, found in vars(log).items()}
        bad += [f"{name}: {line}" for line in log.unexpected()[:2]]
    require(not bad, "; ".join(bad[:3]))
    operations = max(sum(found["places"].values()) for found in setup.numbers.values())
    return f"none but those expected, in {operations} operations of a step of {LAYERS} layers"


def _logged_step(precision: str, recompute: bool, world: World) -> str:
    options = f"--data.batch_size={SEQUENCES}", f"--trainer.recompute={str(recompute).lower()}"
    program, batch = random_step(pretraining_config(LAST_RUNG, precision, *options), SIZES, world)
    executor, text = paddle.static.Executor(world.place), ""
    with paddle.static.scope_guard(paddle.static.Scope()):
        written_to(STDERR, lambda: executor.run(program.startup))
        for _ in range(STEPS):
            text = written_to(STDERR, lambda: program.step(executor, batch))
    return text
