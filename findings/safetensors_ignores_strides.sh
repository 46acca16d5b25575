#!/usr/bin/env bash
# safetensors 0.8.0, safetensors.numpy.save and save_file: arrays that are not contiguous.
#
# Behaviour: the array's memory is written as it lies there, under the shape of the array. Of a transposed matrix, or of
# every second column, other numbers are in the file than in the array, without an error or a warning. 0.5.3 wrote them
# right. (For PyTorch, `safetensors.torch` refuses such tensors.)
#
# Why it surprises: converting weights between libraries is mostly transposing them ([out, in] and [in, out]), and a
# square matrix keeps its shape, so that nothing but the results of the model shows it. Way round:
# `np.ascontiguousarray`.
#
# Output seen:
# safetensors 0.5.3: transposed right, every second column right
# safetensors 0.8.0: transposed WRONG, every second column WRONG
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
cat >strides.py <<'EOF'
import numpy as np
import safetensors
from safetensors.numpy import load, save

matrix = np.arange(16, dtype="float32").reshape(4, 4)
arrays = {"transposed": matrix.T, "every second column": matrix[:, ::2]}
found = [f"{name} {'right' if (load(save({'x': x}))['x'] == x).all() else 'WRONG'}" for name, x in arrays.items()]
print(f"safetensors {safetensors.__version__}: {', '.join(found)}")
EOF
for version in 0.5.3 0.8.0; do
  python3.11 -m venv "env$version"
  "env$version/bin/python" -m pip install -q --disable-pip-version-check safetensors==$version numpy==2.4.6
  "env$version/bin/python" strides.py | tee -a seen
done
diff seen - <<'EOF'
safetensors 0.5.3: transposed right, every second column right
safetensors 0.8.0: transposed WRONG, every second column WRONG
EOF
