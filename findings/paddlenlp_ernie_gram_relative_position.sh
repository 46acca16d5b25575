#!/usr/bin/env bash
# paddlenlp 3.0.0b4 with paddlepaddle 3.3.1: ErnieGramModel and relative positions.
#
# Behaviour: with rel_pos_size the model makes a table rel_pos_embeddings, and never reads it: random values of any size
# in it leave the output as it is to the last bit, and it gets no gradient. The default configuration has no table.
#
# Why it surprises: relative position is a part of ERNIE-Gram, the setting is documented as that of the English model,
# and nothing fails: the model trains, without what its name promises. (After a plain `pip install paddlenlp==3.0.0b4`
# the import fails; with the four pins below it works.)
#
# Output seen:
# relative positions: [40, 2] largest change for a random table: 0.0
#     gradient: None
# absolute positions: [64, 16] largest change 3.85, gradient 5.4e+01
# with the default configuration there is a table: False
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 paddlenlp==3.0.0b4 \
    huggingface_hub==0.25.2 aistudio-sdk==0.2.6 datasets==2.21.0 pyarrow==17.0.0
GLOG_minloglevel=2 env/bin/python -W ignore - 2>errors.txt <<'EOF' || { cat errors.txt; exit 1; }
import numpy as np
import paddle
from paddlenlp.transformers import ErnieGramConfig, ErnieGramModel

paddle.seed(0)
config = ErnieGramConfig(
    vocab_size=50, hidden_size=16, embedding_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
    max_position_embeddings=64, rel_pos_size=40,
)
model = ErnieGramModel(config)
model.eval()
ids = paddle.arange(1, 21).reshape([1, 20])


def run():
    return model(ids)[0].numpy()


table = dict(model.named_parameters())["embeddings.rel_pos_embeddings.weight"]
first = run()
table.set_value(paddle.randn(table.shape) * 1000)
second = run()
model(ids)[0][0, 0, 0].backward()
absolute = dict(model.named_parameters())["embeddings.position_embeddings.weight"]
print("relative positions:", list(table.shape), "largest change for a random table:", abs(first - second).max())
print("    gradient:", table.grad)
gradient = float(absolute.grad.abs().sum())
absolute.set_value(absolute + paddle.randn(absolute.shape))
change = abs(first - run()).max()
print("absolute positions:", list(absolute.shape), f"largest change {change:.2f}, gradient {gradient:.1e}")
by_default = hasattr(ErnieGramModel(ErnieGramConfig()).embeddings, "rel_pos_embeddings")
print("with the default configuration there is a table:", by_default)
same = (first == second).all() and table.grad is None and gradient > 0 and change > 0.1 and not by_default
raise SystemExit(0 if same else "the behaviour has changed")
EOF
