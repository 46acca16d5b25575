#!/usr/bin/env bash
# paddlepaddle 3.3.1, paddle.static.nn.static_pylayer: the same variable given as two inputs.
#
# Behaviour: the forward pass is built, and `static.gradients` then fails: the function for the backward pass "returns
# None", although it returns a gradient for each input. With a copy as the second input the gradients are right.
#
# Why it surprises: y = f(x, x) is an ordinary call, `PyLayer.apply(x, x)` in dynamic mode adds up both gradients, and the
# message names a function that is right. It happens in a network whose layer reads the same tensor as, say, residual and
# as input. Way round: give the second input as `paddle.assign(x)`.
#
# Output seen:
# PyLayer, x twice: gradient 7
# static_pylayer, x and a copy: gradient 7
# static_pylayer, x twice: ValueError: Python function has no return values or returns None
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
cat >twice.py <<'EOF'
import re

import numpy as np
import paddle


def forward(a, b):
    return a * b


def backward(gradient):
    return gradient * 2.0, gradient * 5.0


class Eager(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        return forward(a, b)

    @staticmethod
    def backward(ctx, gradient):
        return backward(gradient)


x = paddle.full([4], 3.0)
x.stop_gradient = False
Eager.apply(x, x).sum().backward()
print(f"PyLayer, x twice: gradient {x.grad[0].item():g}")

paddle.enable_static()
for name, second in {"x and a copy": paddle.assign, "x twice": lambda x: x}.items():
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        x = paddle.static.data("x", [4])
        x.stop_gradient = False
        y = paddle.static.nn.static_pylayer(forward, [x, second(x)], backward)
        try:
            (gradient,) = paddle.static.gradients([y.sum()], [x])
        except ValueError as error:
            print(f"static_pylayer, {name}: ValueError:", re.search(r"Python function [\w ]+None", str(error))[0])
            continue
    (found,) = paddle.static.Executor(paddle.CPUPlace()).run(
        program, feed={"x": np.full(4, 3, "float32")}, fetch_list=[gradient]
    )
    print(f"static_pylayer, {name}: gradient {found[0]:g}")
EOF
GLOG_minloglevel=2 OMP_NUM_THREADS=1 env/bin/python -W ignore twice.py | tee seen
diff seen - <<'EOF'
PyLayer, x twice: gradient 7
static_pylayer, x and a copy: gradient 7
static_pylayer, x twice: ValueError: Python function has no return values or returns None
EOF
