#!/usr/bin/env bash
# paddle2onnx 2.1.0 with paddlepaddle 3.3.1: paddle2onnx.export runs pip.
#
# Behaviour: with its default options the export folds constants through polygraphy, which installs what it misses into
# the running environment while the model is converted, without asking, and adds NVIDIA's index to the search.
# POLYGRAPHY_AUTOINSTALL_DEPS=0 in the environment, or optimize_tool="None", stops it.
#
# Why it surprises: a conversion is taken for a pure function of its files. This one needs the network, changes a locked
# environment, and takes versions that nobody pinned.
#
# Output seen:
# packages before the export: 19, after it: 25; new or changed:
# > flatbuffers==25.12.19
# > ml_dtypes==0.6.0
# > mpmath==1.3.0
# > onnx_graphsurgeon==0.6.1
# > onnxruntime==1.32.0
# > sympy==1.14.0
# pip install onnx_graphsurgeon>=0.3.27 --extra-index-url=https://pypi.ngc.nvidia.com
# pip install onnxruntime>=1.10.0
# pip install sympy
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 paddle2onnx==2.1.0 packaging==26.4
env/bin/python -m pip freeze --disable-pip-version-check >before.txt
GLOG_minloglevel=2 env/bin/python -W ignore - >export.txt 2>&1 <<'EOF' || { cat export.txt; exit 1; }
import paddle
import paddle2onnx
from paddle import static

paddle.enable_static()
executor = static.Executor(paddle.CPUPlace())
program, startup = static.Program(), static.Program()
with static.program_guard(program, startup):
    x = static.data("x", [-1, 4], "float32")
    y = paddle.nn.Linear(4, 4)(x)
executor.run(startup)
static.save_inference_model("model", [x], [y], executor, program=program)
paddle2onnx.export("model.json", "model.pdiparams", "model.onnx")
EOF
env/bin/python -m pip freeze --disable-pip-version-check >after.txt
echo "packages before the export: $(wc -l <before.txt), after it: $(wc -l <after.txt); new or changed:"
diff before.txt after.txt | grep '^>' | tee new.txt || true
grep "Running installation command" export.txt | grep -o "pip install .*" | sort -u || true
if ! grep -q onnx_graphsurgeon new.txt || ! [ -s model.onnx ]; then
    cat export.txt
    echo "the behaviour has changed"
    exit 1
fi
