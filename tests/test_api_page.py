"""The Python code of docs/api.md runs from top to bottom in one process, beside plain Paddle code in dynamic mode."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tasks.registry import TASKS
from tests.support.commands import ROOT, python
from tests.support.finetuned_runs import made_run
from tests.support.tiny_task import TASK

BEFORE = """
import os
import paddle
paddle.seed(7)
x = paddle.to_tensor([3.0], stop_gradient=False)
y = x * x
environment, device, expected = dict(os.environ), paddle.get_device(), 9 + 6
"""
AFTER = """
y.backward()
assert y.item() + x.grad.item() == expected
assert paddle.in_dynamic_mode() and paddle.get_device() == device and dict(os.environ) == environment
assert losses[-1] < 0.5 * losses[0], losses
assert lost and pair.offsets.count(None) == 3 and index == 0
assert again.weight.numpy().tolist() == output.weight.numpy().tolist()
assert trained.task.labels == ("original", "swapped")
assert means.shape == (2, layer.hidden_size) and len(corpus) == len(list(corpus))
assert maps.weights.shape[2:] == (len(maps.tokens),) * 2
print("end of the page")
"""


def test_the_page_runs_in_one_process_beside_code_of_ones_own(built: Path, finished: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/api.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 12
    first = tmp_path / "output" / "first"
    task = replace(TASKS["sst2"], labels=("original", "swapped"))
    made_run(first / "order", task)
    for name in ("lexicon.tsv", "lexicon.tsv.json", "vocab.txt", "corpus"):
        (first / name).symlink_to(built / name)
    (first / "model").symlink_to(finished)
    (first / "order.yaml").write_text(TASK.replace("label: label", "label: words"))
    for name, count in (("train", 64), ("dev", 8)):
        lines = [f"the value of {i}\t{('original', 'swapped')[i % 2]}\n" for i in range(count)]
        (first / f"{name}.tsv").write_text("text\twords\n" + "".join(lines))
    # Blocks only print; what they compute is checked at the end.
    # The model of the tests has 32 positions.
    page = "\n".join(blocks).replace('"max_seq_len": 64', '"max_seq_len": 32')
    done = python("-c", "\n".join([BEFORE, page, AFTER]), cwd=tmp_path).ok()
    assert done.stdout.endswith("end of the page\n")
    assert "nowhere: no corpus there" in done.stdout
