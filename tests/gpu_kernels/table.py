"""The table of Paddle's kernels for GPUs: `registered.tsv`, with the columns kernel, dtypes, and source.

`make gpu-kernels` writes the rows of Paddle's package for GPUs again:

    python -m tests.gpu_kernels.table PYTHON

PYTHON is an interpreter that has this package; it needs no GPU. Rows with another source are kept: kernels that are not
in this package, or have other dtypes in later versions. They were read in Paddle's source code, and their source is the
file and its version.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("registered.tsv")
HEADER = ("kernel", "dtypes", "source")
# Printed by the other interpreter. The keys of a kernel are texts like "(GPU, Undefined(AnyLayout), float32)", where
# GPUDNN stands for kernels that call cuDNN.
DUMP = """
import paddle
kernels = paddle.base.core._get_registered_phi_kernels("all")
print("source", "paddlepaddle-gpu " + paddle.__version__)
for name, keys in kernels.items():
    print("kernel", name, *(key.strip("()").split(", ")[-1] for key in keys if key.startswith(("(GPU,", "(GPUDNN,"))))
"""


class Row(NamedTuple):
    """A kernel, the dtypes for which it is registered, and where this was seen."""

    kernel: str
    dtypes: frozenset[str]
    source: str


def read_table(path: Path = TABLE) -> dict[str, Row]:
    """Return the rows of the table by kernel."""
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    assert header == "\t".join(HEADER)
    cells = (line.split("\t") for line in lines)
    return {kernel: Row(kernel, frozenset(dtypes.split()), source) for kernel, dtypes, source in cells}


def write_table(rows: dict[str, Row], path: Path = TABLE) -> None:
    """Write the rows of the table, sorted by kernel."""
    lines = ("\t".join((row.kernel, " ".join(sorted(row.dtypes)), row.source)) for _, row in sorted(rows.items()))
    path.write_text("\n".join(["\t".join(HEADER), *lines, ""]), encoding="utf-8")


def parse_dump(text: str) -> dict[str, Row]:
    """Return the rows that DUMP has printed; kernels that are only for CPUs have none."""
    lines = text.splitlines()
    (source,) = (line.partition(" ")[2] for line in lines if line.startswith("source "))
    kernels = (line.split()[1:] for line in lines if line.startswith("kernel "))
    return {kernel: Row(kernel, frozenset(dtypes), source) for kernel, *dtypes in kernels if dtypes}


def merged(old: dict[str, Row], dumped: dict[str, Row]) -> dict[str, Row]:
    """Return the dumped rows, and the old rows from source files, which take precedence."""
    package = next(iter(dumped.values())).source.split()[0]
    return dumped | {kernel: row for kernel, row in old.items() if not row.source.startswith(package)}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="an interpreter with Paddle's package for GPUs")
    # Without the warning that there is no GPU.
    command = [parser.parse_args().python, "-W", "ignore", "-c", DUMP]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    dumped = parse_dump(done.stdout)
    rows = merged(read_table() if TABLE.exists() else {}, dumped)
    write_table(rows)
    print(f"{len(dumped)} kernels from {next(iter(dumped.values())).source}, {len(rows)} rows")


if __name__ == "__main__":
    main()
