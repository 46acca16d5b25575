"""Compare all programs with the table of kernels, and list their copies: `python -m tests.gpu_kernels.compare`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ernie_gram.distributed.world import start_world
from ernie_gram.gpu_checks.programs import PRECISIONS, RUNGS, Case, other_cases, pretraining_cases
from tasks.kernels import HEADS, task_cases
from tests.gpu_kernels.placement import Copy, Placement, simulate
from tests.gpu_kernels.table import read_table
from tests.support.pretended_gpu import enter_kernels, pretend

if TYPE_CHECKING:
    import paddle

# Copies between GPU and host that a step may make, with the largest number of each, and the reason.
FROM_GPU = {
    # AdamW reads on the host whether an update is skipped (UpdateGuard). The host reads the values of such a step too.
    "memcpy(x) from reshape": 1,
    # How many rows of a gradient are used is the size of the tensor that is exchanged (row_exchange.sum_gradients).
    "nonzero(its number of rows) from nonzero": 1,
}
# Numbers of rows and of bytes follow from shapes, which the host knows. Nothing waits for a copy to the GPU.
TO_GPU = {
    # The number of rows of a term, by which its loss is divided; there are four terms at most.
    "divide(y) from slice": 4,
    "divide_grad(y) from slice": 4,
    "stack(x) from cast": 4,
    "concat(x) from flatten": 1,
    # The number of bytes that a rank sends.
    "add_n(inputs) from scale": 1,
}


def faults(case: Case, found: Placement) -> list[str]:
    """Return what a program should not do, one line each."""
    lines = [f"no kernel for GPUs: {kernel} of {dtype}" for kernel, dtype in sorted(found.fallbacks)]
    if case.is_step:
        lines += [f"copied from the GPU: {line}" for line in _beyond(found.to_host, FROM_GPU)]
        lines += [f"copied to the GPU: {line}" for line in _beyond(found.to_gpu, TO_GPU)]
    return [f"{case.name}: {line}" for line in lines]


def _beyond(copies: Iterable[Copy], accepted: Mapping[str, int]) -> Iterator[str]:
    for copy, count in Counter(map(str, copies)).items():
        if count > accepted.get(copy, 0):
            yield f"{count} x {copy}"


def all_cases(place: paddle.base.core.Place) -> Iterator[Case]:
    """Yield every program."""
    for precision in PRECISIONS:
        for rung in RUNGS:
            yield from pretraining_cases(rung, precision, place)
        for head in HEADS:
            yield from task_cases(head, precision, place)
    yield from other_cases(RUNGS)


def main() -> None:
    """Print the faults of all programs, how many were compared, and where their kernels were seen."""
    pretend(gpus=2)
    enter_kernels()
    place = start_world("gpu").place
    table = read_table()
    programs, keys, copies = 0, set(), Counter[str]()
    for case in all_cases(place):
        found = simulate(case.program, table)
        print(*faults(case, found), sep="\n", end="\n" if faults(case, found) else "")
        programs += 1
        keys |= {(kernel, dtype) for _, kernel, dtype in found.keys}
        if case.is_step:
            copies.update({f"from the GPU: {copy}" for copy in found.to_host})
            copies.update({f"to the GPU: {copy}" for copy in found.to_gpu})
    print(f"\n{programs} programs, {len(keys)} kernels with dtypes")
    for source, count in Counter(table[k].source if k in table else "only on the host" for k, _ in keys).most_common():
        print(f"  {count} {source}")
    print("copies, with the number of programs that make them:")
    for copy, count in copies.most_common():
        print(f"  {count} {copy}")


if __name__ == "__main__":
    main()
