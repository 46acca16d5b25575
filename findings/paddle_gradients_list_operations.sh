#!/usr/bin/env bash
# paddlepaddle 3.3.1, paddle.static.gradients (and append_backward, Optimizer.minimize) of a large static program.
#
# Behaviour: for each operation that is differentiated, Paddle's Python code makes the list of all operations of the
# program three times, twice to count them and once to take the last ones. So the time grows with the square of the
# number of operations.
#
# Why it surprises: it is spent before anything runs, no profile of the executor shows it, and it looks like the price
# of a large model: for a program of 4,500 operations, a transformer of 12 layers and its gradients, it is about a third
# of the time of building. Way round: fewer operations, or a property `ops` of paddle.pir.Block that adds only the new
# operations to its last list.
#
# Output seen (an Intel Xeon):
# additions   500: gradients take  0.17 s; 1,504 lists of 1,132,258 operations take  0.06 s
# additions  4000: gradients take  6.68 s; 12,004 lists of 72,058,008 operations take  5.18 s
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
GLOG_minloglevel=2 OMP_NUM_THREADS=1 env/bin/python -W ignore - <<'EOF'
import time

import paddle

paddle.enable_static()
list_all, lists = paddle.pir.Block.ops.fget, []


def counted(block):
    start = time.process_time()
    found = list_all(block)
    lists.append((len(found), time.process_time() - start))
    return found


paddle.pir.Block.ops = property(counted)
found = {}
for additions in (500, 4000):
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        x = total = paddle.static.data("x", [1], "float32")
        x.stop_gradient = False
        for _ in range(additions):
            total = total + x
        lists.clear()
        start = time.process_time()
        paddle.static.gradients([total], [x])
        seconds = time.process_time() - start
    listed = sum(size for size, _ in lists)
    print(
        f"additions {additions:5d}: gradients take {seconds:5.2f} s; {len(lists):,} lists of {listed:,} operations take "
        f"{sum(taken for _, taken in lists):5.2f} s"
    )
    found[additions] = len(lists), listed
(few, small), (many, large) = found.values()
same = few > 3 * 500 and many > 3 * 4000 and large > 50 * small  # 8 times the operations, 64 times as long
raise SystemExit(0 if same else "the behaviour has changed")
EOF
