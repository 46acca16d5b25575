#!/usr/bin/env bash
# `ernie-gram pretrain` of this checkout, which need not be installed: run_pretrain.sh CONFIG [--section.key VALUE ...]
# PYTHON is the interpreter (default: that of .venv, or python).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
PYTHON=${PYTHON:-$([ -x "$here/.venv/bin/python" ] && echo "$here/.venv/bin/python" || echo python)}
# Otherwise a folder `reader` in the current folder would come first (Python 3.11 or later).
export PYTHONSAFEPATH=1
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
exec "$PYTHON" -m reader.console_script pretrain "$@"
