#!/usr/bin/env bash
# paddlepaddle 3.3.1, paddle.split in a static program.
#
# Behaviour: with sections that are tensors, such as sizes that paddle.shape gives, the parts have no known size at all:
# [-1, -1, -1] for rows of 24 numbers. A slice of the same rows, with the same tensor as its end, keeps the 24.
#
# Why it surprises: only the axis that is split depends on the tensors; a layer that reads the last size of a part, to
# make its weights or zeros of the same width, fails with a message about its own arguments. Way round: reshape the
# parts to [0, 0, 24], which copies nothing, or slice (whose gradients are padded with zeros and added up).
#
# Output seen:
# sections that are numbers: [[-1, 2, 24], [-1, 3, 24]]
# sections that are tensors: [[-1, -1, -1], [-1, -1, -1]]
# slices up to a tensor:     [[-1, -1, 24], [-1, -1, 24]]
# zeros of the last size:    ValueError
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
GLOG_minloglevel=2 env/bin/python -W ignore - <<'EOF'
import numpy as np
import paddle

paddle.enable_static()
program = paddle.static.Program()
with paddle.static.program_guard(program, paddle.static.Program()):
    rows = paddle.static.data("rows", [-1, -1, 24], "float32")
    first = paddle.static.data("first", [-1, -1], "int64")
    size, rest = paddle.shape(first)[1], paddle.shape(rows)[1] - paddle.shape(first)[1]
    known = paddle.split(paddle.static.data("five", [-1, 5, 24], "float32"), [2, 3], axis=1)
    parts = paddle.split(rows, [size, rest], axis=1)
    slices = [rows[:, :size], rows[:, size:]]
    shapes = [[list(part.shape) for part in found] for found in (known, parts, slices)]
    try:
        paddle.zeros([2, parts[0].shape[-1]])
        zeros = "made"
    except ValueError:
        zeros = "ValueError"
    feed = {"rows": np.zeros((2, 5, 24), np.float32), "first": np.zeros((2, 2), np.int64)}
    feed["five"] = feed["rows"]
    found = paddle.static.Executor(paddle.CPUPlace()).run(program, feed=feed, fetch_list=parts)
assert [part.shape for part in found] == [(2, 2, 24), (2, 3, 24)]
names = "sections that are numbers:", "sections that are tensors:", "slices up to a tensor:    "
for name, shape in zip(names, shapes):
    print(name, shape)
print("zeros of the last size:   ", zeros)
is_same = [shape[0][-1] for shape in shapes] == [24, -1, 24] and zeros == "ValueError"
raise SystemExit(0 if is_same else "the behaviour has changed")
EOF
