#!/usr/bin/env bash
# paddlepaddle 3.3.1, paddle.static.load: the file's shapes are not compared with the program's.
#
# Behaviour: parameters of another model are loaded if the names agree. Afterwards the program runs with the file's
# shapes: one that declares 4 classes returns 9. Nothing is raised or warned of.
#
# Why it surprises: static.load does refuse a file that lacks a parameter, and Layer.set_state_dict keeps the layer's
# own values where shapes differ. A vocabulary of another size is noticed only when an ID beyond the smaller table
# comes, a head of another size when somebody reads the scores. Way round: compare paddle.load(path) with
# program.global_block().all_parameters() first.
#
# Output seen:
# the program declares [-1, 4, 4] ; result before static.load (1, 4, 4) , after (1, 4, 9)
#     table  declared [100, 8], now [50, 16]
#     matrix declared [8, 4], now [16, 9]
#     bias   declared [4], now [9]
# Layer.set_state_dict keeps [8, 4] [4]
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
GLOG_minloglevel=2 env/bin/python -W ignore - <<'EOF'
import numpy as np
import paddle
from paddle import ParamAttr, static

paddle.enable_static()
executor = static.Executor(paddle.CPUPlace())


def build(words, width, classes):
    program, startup = static.Program(), static.Program()
    with static.program_guard(program, startup):
        ids = static.data("ids", [-1, 4], "int64")
        embedded = paddle.nn.Embedding(words, width, weight_attr=ParamAttr(name="table"))(ids)
        logits = paddle.nn.Linear(width, classes, ParamAttr(name="matrix"), ParamAttr(name="bias"))(embedded)
    return program, startup, logits


other, startup, _ = build(50, 16, 9)
with static.scope_guard(static.Scope()):
    executor.run(startup)
    static.save(other, "other")

program, startup, logits = build(100, 8, 4)
executor.run(startup)
feed = {"ids": np.array([[1, 2, 3, 4]])}
before = executor.run(program, feed=feed, fetch_list=[logits])[0].shape
answer = static.load(program, "other", executor)
after = executor.run(program, feed=feed, fetch_list=[logits])[0].shape
print("the program declares", list(logits.shape), "; result before static.load", before, ", after", after)
for name in ("table", "matrix", "bias"):
    declared = next(p.shape for p in program.global_block().all_parameters() if p.name == name)
    print(f"    {name:6s} declared {list(declared)}, now", static.global_scope().find_var(name).get_tensor().shape())

paddle.disable_static()
layer = paddle.nn.Linear(8, 4)
layer.set_state_dict({"weight": paddle.ones([16, 9]), "bias": paddle.ones([9])})
print("Layer.set_state_dict keeps", list(layer.weight.shape), list(layer.bias.shape))
same = answer is None and (before, after) == ((1, 4, 4), (1, 4, 9)) and list(layer.weight.shape) == [8, 4]
raise SystemExit(0 if same else "the behaviour has changed")
EOF
