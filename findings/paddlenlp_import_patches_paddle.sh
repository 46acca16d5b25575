#!/usr/bin/env bash
# paddlenlp 3.0.0b4 with paddlepaddle 3.3.1: what `import paddlenlp` does to paddle.
#
# Behaviour: the import replaces 12 functions and methods of paddle itself, for the whole process: to_tensor,
# Tensor.numpy and set_value, functional.linear (by a wrapper from the module of DeepSeek-V2), and forward of the
# Transformer's layers. Code that never uses PaddleNLP gets them too: the caches that paddle.nn.TransformerEncoder
# returns become a tuple.
#
# Why it surprises: nothing of it is on the pages of Paddle or of PaddleNLP's models, the import is silent, and the
# functions keep their names. A test passes alone and fails after a test that imports PaddleNLP; a difference between
# two scripts lies in an unused import; a traceback of a plain Linear goes through fp8_linear.
#
# Output seen:
# 12 functions of Paddle are others after `import paddlenlp`:
#     paddle.Tensor.numel from paddlenlp.utils.paddle_patch
#     paddle.Tensor.numpy from paddlenlp.utils.paddle_patch
#     (8 more: set_value, Embedding.extra_repr, __init__ and forward of TransformerEncoder and TransformerDecoder,
#     forward of their layers)
#     paddle.nn.functional.linear from paddlenlp.transformers.deepseek_v2.fp8_linear
#     paddle.to_tensor from paddlenlp.utils.paddle_patch
# added: (7 names, such as paddle.Tensor.__call__)
# caches that paddle.nn.TransformerEncoder returns: list before, tuple after
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 paddlenlp==3.0.0b4 \
    huggingface_hub==0.25.2 aistudio-sdk==0.2.6 datasets==2.21.0 pyarrow==17.0.0
GLOG_minloglevel=2 env/bin/python -W ignore - 2>errors.txt <<'EOF' || { cat errors.txt; exit 1; }
import inspect

import paddle

ROOMS = {"paddle": paddle, "paddle.Tensor": paddle.Tensor, "paddle.nn.functional": paddle.nn.functional}
ROOMS |= {f"paddle.nn.{name}": kind for name, kind in vars(paddle.nn).items() if inspect.isclass(kind)}


def everything():
    members = ((f"{room}.{name}", value) for room, owner in ROOMS.items() for name, value in vars(owner).copy().items())
    return {name: value for name, value in members if callable(value)}


def cache_kind():
    encoder = paddle.nn.TransformerEncoder(paddle.nn.TransformerEncoderLayer(8, 2, 16), 2)
    x = paddle.ones([1, 3, 8])
    return type(encoder(x, None, encoder.gen_cache(x))[1]).__name__


before, cache_before = everything(), cache_kind()
import paddlenlp  # noqa: E402, F401

after, cache_after = everything(), cache_kind()
replaced = sorted(name for name in before if after[name] is not before[name])
print(len(replaced), "functions of Paddle are others after `import paddlenlp`:")
for name in replaced:
    print("   ", name, "from", inspect.unwrap(after[name]).__module__)
print("added:", *sorted(set(after) - set(before)))
print("caches that paddle.nn.TransformerEncoder returns:", cache_before, "before,", cache_after, "after")
expected = {"paddle.to_tensor", "paddle.nn.functional.linear", "paddle.nn.TransformerEncoder.forward"}
same = expected <= set(replaced) and (cache_before, cache_after) == ("list", "tuple")
raise SystemExit(0 if same else "the behaviour has changed")
EOF
