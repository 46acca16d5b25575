#!/usr/bin/env bash
# paddlepaddle 3.3.1, paddle.ones_like, zeros_like and full_like in a static program.
#
# Behaviour: each call warns that a tensor has no 'place' in a program, "try not to use it", although the caller has not
# asked for one: without the argument `device`, the function itself reads the place of its input. With any `device`
# given there is no warning. The program and its numbers are the same.
#
# Why it surprises: the functions are documented for static programs and have no documented alternative there; the
# warning names no line of the caller, and who makes warnings errors cannot build a program with them. Way round: ignore
# warnings while a program is built, or use paddle.full with the shape.
#
# Output seen:
# ones_like: warns True, result [1.0, 1.0]
# zeros_like: warns True, result [0.0, 0.0]
# full_like: warns True, result [7.0, 7.0]
# full_like with a device: warns False
# full: warns False
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
GLOG_minloglevel=2 env/bin/python - <<'EOF'
import warnings

import numpy as np

warnings.simplefilter("ignore")
import paddle

paddle.enable_static()
executor = paddle.static.Executor(paddle.CPUPlace())


def build(function):
    """Return whether building a program with a function of x warns of a place, and what it computes."""
    program = paddle.static.Program()
    with warnings.catch_warnings(record=True) as caught, paddle.static.program_guard(program):
        warnings.simplefilter("always")
        result = function(paddle.static.data("x", [2], "float32"))
    (values,) = executor.run(program, {"x": np.zeros(2, np.float32)}, [result])
    return any("place" in str(each.message) for each in caught), values.tolist()


for name, arguments, expected in (("ones_like", (), 1.0), ("zeros_like", (), 0.0), ("full_like", (7.0,), 7.0)):
    warns, values = build(lambda x: getattr(paddle, name)(x, *arguments))
    print(f"{name}: warns {warns}, result {values}")
    assert warns and values == [expected] * 2
warns, _ = build(lambda x: paddle.full_like(x, 7.0, device="cpu"))
print(f"full_like with a device: warns {warns}")
assert not warns
warns, _ = build(lambda x: paddle.full(x.shape, 7.0))
print(f"full: warns {warns}")
assert not warns
EOF
