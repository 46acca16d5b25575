#!/usr/bin/env bash
# `ernie-gram finetune` of this checkout, which need not be installed: run_finetune.sh TASK MODEL [--section.key VALUE ...]
# With --list as its first word it is `ernie-gram tasks`, with --sweep or --benchmark it is `ernie-gram sweep`.
# PYTHON is the interpreter (default: that of .venv, or python).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
PYTHON=${PYTHON:-$([ -x "$here/.venv/bin/python" ] && echo "$here/.venv/bin/python" || echo python)}
# Otherwise a folder `reader` in the current folder would come first (Python 3.11 or later).
export PYTHONSAFEPATH=1
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
case ${1:-} in
  --list) set -- tasks "${@:2}" ;;
  --sweep | --benchmark) set -- sweep "${@:2}" ;;
  *) set -- finetune "$@" ;;
esac
exec "$PYTHON" -m reader.console_script "$@"
