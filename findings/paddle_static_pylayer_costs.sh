#!/usr/bin/env bash
# paddlepaddle 3.3.1, paddle.static.nn.static_pylayer: the threads that each call takes while the program lives.
#
# Behaviour: the forward and the backward pass of every static_pylayer get an executor of their own, with threads of its
# own. So 50 small layers with a gradient take 500 threads, whatever the size of the tensors, and some 80 MB.
#
# Why it surprises: it is the public way to give an operation a gradient of one's own in a static program, and in dynamic
# mode (PyLayer) it costs nothing but the call. A network that uses it several times in each of its layers meets limits on
# the number of threads. Way round: few regions, each with much in it. With FLAGS_enable_pir_in_executor_trace_run=True
# a pass takes one thread.
#
# Output seen (two cores):
# 50 multiplications as operations: +5 threads; as static_pylayer: +505 threads; traced: +101 threads
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
cat >measure.py <<'EOF'
import sys

import numpy as np
import paddle

paddle.enable_static()
as_layers = sys.argv[1] == "static_pylayer"


def threads():
    return int(open("/proc/self/status").read().split("Threads:")[1].split()[0])


program = paddle.static.Program()
with paddle.static.program_guard(program):
    x = paddle.static.data("x", [4, 4])
    x.stop_gradient = False
    y = x
    for _ in range(50):
        y = paddle.static.nn.static_pylayer(lambda v: v * 1.0, [y], lambda g: g * 1.0) if as_layers else y * 1.0
    (gradient,) = paddle.static.gradients([y.sum()], [x])
executor = paddle.static.Executor(paddle.CPUPlace())
before = threads()
for _ in range(3):
    (found,) = executor.run(program, feed={"x": np.ones((4, 4), "float32")}, fetch_list=[gradient])
assert (found == 1).all()
print(threads() - before)
EOF
measure() { GLOG_minloglevel=2 OMP_NUM_THREADS=1 env/bin/python -W ignore measure.py "$@" | tail -n 1; }
plain=$(measure operations)
layers=$(measure static_pylayer)
traced=$(FLAGS_enable_pir_in_executor_trace_run=True measure static_pylayer)
echo "50 multiplications as operations: +$plain threads; as static_pylayer: +$layers threads; traced: +$traced threads"
# On more cores, an executor may have more threads.
((layers >= plain + 200 && traced >= 50))
