#!/usr/bin/env bash
# paddlepaddle 3.3.1, paddle.nn.functional.cross_entropy (and nn.CrossEntropyLoss): label_smoothing with ignore_index.
#
# Behaviour: if ignore_index is a class (the ID of [PAD], for instance) and label_smoothing > 0, then nothing is
# ignored, and the mean divides by rows x classes instead of rows: loss and gradient are too small by the number of
# classes. With the default -100 and rows labelled -100 (right without smoothing) the same call raises ValueError.
#
# Why it surprises: the function's page describes both arguments and forbids nothing, no warning comes, and a loss of
# 0.00099 at 10,000 classes looks like a model that has learned. Adam hides the gradient's scale; clipping, and the
# weight against a second term of the loss, do not work any more. Way round: reduction="none" and a mask of one's own.
#
# Output seen:
# classes    100: wanted 5.43920, got 0.0520457; all 8 rows 5.20457 = 100.0 x got
#     gradient of the ignored row: wanted 0.0e+00, got 2.2e-03
# classes  10000: wanted 10.16218, got 0.0009904; all 8 rows 9.90395 = 10000.0 x got
#     gradient of the ignored row: wanted 0.0e+00, got 2.3e-05
# without smoothing ignore_index is right to 0.0e+00
# label -100, ignore_index -100, smoothing: ValueError
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
GLOG_minloglevel=2 env/bin/python -W ignore - <<'EOF'
import numpy as np
import paddle
import paddle.nn.functional as F

PAD, SMOOTHING = 0, 0.1
changed = False
for classes in (100, 10_000):
    logits = paddle.to_tensor(np.random.RandomState(0).randn(8, classes).astype("float32"), stop_gradient=False)
    labels = paddle.arange(8)  # the first row has the label 0, which shall be ignored

    def loss_and_gradient(rows, **options):
        logits.clear_gradient()
        loss = F.cross_entropy(logits[rows:], labels[rows:], label_smoothing=SMOOTHING, **options)
        loss.backward()
        return float(loss), logits.grad.numpy()

    right, right_gradient = loss_and_gradient(1)  # without the first row
    everything, whole_gradient = loss_and_gradient(0)
    seen, gradient = loss_and_gradient(0, ignore_index=PAD)
    ratio = everything / seen
    print(f"classes {classes:6d}: wanted {right:.5f}, got {seen:.7f}; all 8 rows {everything:.5f} = {ratio:.1f} x got")
    wanted_row, got_row = abs(right_gradient[0]).sum(), abs(gradient[0]).sum()
    print(f"    gradient of the ignored row: wanted {wanted_row:.1e}, got {got_row:.1e}")
    changed |= not np.isclose(ratio, classes, rtol=1e-3)
    changed |= not np.allclose(whole_gradient, gradient * classes, rtol=1e-2)
plain = float(F.cross_entropy(logits, labels, ignore_index=PAD)) - float(F.cross_entropy(logits[1:], labels[1:]))
print(f"without smoothing ignore_index is right to {abs(plain):.1e}")
labels[0] = -100
try:
    F.cross_entropy(logits, labels, ignore_index=-100, label_smoothing=SMOOTHING)
    changed = True
except ValueError as error:
    print("label -100, ignore_index -100, smoothing:", type(error).__name__)
raise SystemExit("the behaviour has changed" if changed or abs(plain) > 1e-5 else 0)
EOF
