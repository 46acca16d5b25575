"""The table of kernels: what a dump becomes, and which rows it leaves."""

from __future__ import annotations

from pathlib import Path

from tests.gpu_kernels.table import Row, merged, parse_dump, read_table, write_table

DUMP = """\
A message of Paddle's.
source paddlepaddle-gpu 2.6.2
kernel matmul float32 float16 float32
kernel only_for_cpus
"""


def test_a_dump_replaces_the_rows_of_the_package_and_no_others(tmp_path: Path) -> None:
    dumped = parse_dump(DUMP)
    row = Row("matmul", frozenset({"float16", "float32"}), "paddlepaddle-gpu 2.6.2")
    assert dumped == {"matmul": row}
    later = Row("linear_v2", frozenset({"float32"}), "linear_v2_kernel.cu at 1234")
    changed = Row("gelu", frozenset({"float16"}), "gelu_kernel.cu at 1234")
    removed = Row("old", frozenset({"float32"}), "paddlepaddle-gpu 2.5.0")
    old = {each.kernel: each for each in (later, changed, removed)}
    package_gelu = Row("gelu", frozenset({"float32"}), "paddlepaddle-gpu 2.6.2")
    table = merged(old, dumped | {"gelu": package_gelu})
    assert table == {"matmul": row, "gelu": changed, "linear_v2": later}
    write_table(table, tmp_path / "table.tsv")
    assert read_table(tmp_path / "table.tsv") == table


def test_the_table_has_the_kernels_of_the_package_and_the_version_of_every_other_source() -> None:
    table = read_table()
    sources = {row.source for row in table.values()}
    assert "paddlepaddle-gpu 2.6.2" in sources
    assert len(table) > 1000
    assert all(" at " in source or " since " in source for source in sources if "/" in source)
    assert table["matmul"].dtypes >= {"float32", "bfloat16", "float16"}
