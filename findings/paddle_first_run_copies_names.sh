#!/usr/bin/env bash
# paddlepaddle 3.3.1, the first Executor.run of a large static program on a CPU.
#
# Behaviour: the first run prepares an instruction for each operation, and its constructor
# (InstructionBase::InitInputsOutputsIds) copies the table of the names of all variables of the program, with every
# name. So the time of the first run grows with the square of the number of operations.
#
# Why it surprises: it is native code, so a Python profile shows one call, and the copy is made for each operation,
# whether or not it works in place, for which the table is. In a profile by `perf` of the first run of a transformer of
# 12 layers with gradients and AdamW (3,910 operations) that function takes 20 % of 7 seconds. Way round: fewer
# operations, for example several that follow one another as one.
#
# Output seen (an AMD EPYC, family 26, model 2):
# additions  1000: first run   0.23 s, second run  0.00 s
# additions  8000: first run  14.70 s, second run  0.04 s
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
GLOG_minloglevel=2 OMP_NUM_THREADS=1 env/bin/python -W ignore - <<'EOF'
import time

import numpy as np
import paddle

paddle.enable_static()
executor, found = paddle.static.Executor(paddle.CPUPlace()), []
executor.run(paddle.static.Program())
for additions in (1000, 8000):
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        x = total = paddle.static.data("x", [1], "float32")
        for _ in range(additions):
            total = total + x
    seconds = []
    for _ in range(2):
        start = time.process_time()
        (value,) = executor.run(program, feed={"x": np.ones(1, np.float32)}, fetch_list=[total])
        seconds.append(time.process_time() - start)
    assert value == additions + 1
    print(f"additions {additions:5d}: first run {seconds[0]:6.2f} s, second run {seconds[1]:5.2f} s")
    found.append(seconds[0] - seconds[1])
few, many = found
raise SystemExit(0 if many > 16 * few else "the behaviour has changed")  # 8 times the operations
EOF
