#!/usr/bin/env bash
# paddlepaddle 3.3.1, paddle.static.Executor.run of a program that was run before.
#
# Behaviour: in every run the executor writes the whole program as text, to look in its cache for what it prepared in
# the first run. The time grows with the number of operations and is spent on the host before anything is computed.
# use_program_cache=True, described as what makes runs with an unchanged program faster, changes nothing.
#
# Why it surprises: run() is documented as the call for a training loop, and nothing in the loop asks for text. A
# training step of a transformer of 12 layers has some 4,500 operations, whose texts are longer: 20 to 40 ms of each
# step, in which a GPU would be given no work. Way round: fewer operations; or keep what the executor prepares, which
# has private names only.
#
# Output seen (an Intel Xeon):
# operations    50: 3 texts of      5,465 characters in 3 runs; a run takes  0.42 ms, of which the text  0.12
# operations  5000: 3 texts of    552,917 characters in 3 runs; a run takes 23.95 ms, of which the text  7.78
# with use_program_cache=True: 3 texts in 3 runs
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
PROGRAM, RUNS = paddle.static.Program, 3
write, written = PROGRAM.__str__, []


def counted(program):
    start = time.process_time()
    text = write(program)
    written.append((len(text), time.process_time() - start))
    return text


PROGRAM.__str__ = counted


def runs(operations, **options):
    """Return what was written in the runs after the first, and the CPU seconds of one."""
    main = PROGRAM()
    with paddle.static.program_guard(main, PROGRAM()):
        x = total = paddle.static.data("x", [1], "float32")
        for _ in range(operations):
            total = total + x
    executor, feed = paddle.static.Executor(paddle.CPUPlace()), {"x": np.ones(1, np.float32)}
    executor.run(main, feed=feed, fetch_list=[total], **options)
    written.clear()
    start = time.process_time()
    for _ in range(RUNS):
        (value,) = executor.run(main, feed=feed, fetch_list=[total], **options)
    assert value[0] == operations + 1
    return list(written), (time.process_time() - start) / RUNS


found = {}
for operations in (50, 5000):
    texts, seconds = found[operations] = runs(operations)
    print(
        f"operations {operations:5d}: {len(texts)} texts of {texts[0][0] if texts else 0:10,d} characters in {RUNS} runs;"
        f" a run takes {seconds * 1e3:5.2f} ms, of which the text {sum(text[1] for text in texts) / RUNS * 1e3:5.2f}"
    )
cached, _ = runs(50, use_program_cache=True)
print(f"with use_program_cache=True: {len(cached)} texts in {RUNS} runs")
small, large = (texts for texts, _ in found.values())
same = len(small) == len(large) == len(cached) == RUNS and large[0][0] > 50 * small[0][0]
raise SystemExit(0 if same else "the behaviour has changed")
EOF
