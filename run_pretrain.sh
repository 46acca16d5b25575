#!/usr/bin/env bash
# Pre-train: run_pretrain.sh CONFIG [--section.key VALUE ...]
#   NPROC        processes on this machine (default: one for each visible GPU, else 1)
#   LAUNCH_ARGS  more arguments for paddle.distributed.launch, e.g. "--master HOST:PORT --nnodes 4 --rank 0"
#   LOG_DIR      where the launcher keeps each process's output (default: log)
set -euo pipefail
if [ $# -lt 1 ] || [ "$1" = "--help" ]; then
  sed -n '2,5s/^# \?//p' "$0"
  exit $(( $# < 1 ? 2 : 0 ))
fi
here=$(cd "$(dirname "$0")" && pwd)
config=$1
shift
PYTHON=${PYTHON:-$([ -x "$here/.venv/bin/python" ] && echo "$here/.venv/bin/python" || echo python)}
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
if [ -n "${CUDA_VISIBLE_DEVICES+set}" ]; then
  # Empty, it hides all of them; -1 and what is behind it are none.
  gpus=$(tr ',' '\n' <<< "$CUDA_VISIBLE_DEVICES" | sed '/^-/,$d' | grep -c . || true)
else
  gpus=$( (nvidia-smi --list-gpus 2>/dev/null || true) | wc -l)
fi
NPROC=${NPROC:-$(( gpus > 0 ? gpus : 1 ))}
if ! [[ $NPROC =~ ^[1-9][0-9]*$ ]]; then
  echo "error: NPROC: $NPROC is not a number of processes" >&2
  exit 2
fi
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$(( $(nproc) > NPROC ? $(nproc) / NPROC : 1 ))}
# Large pages for large arrays: on a CPU a third less time is spent in attention. And what is freed is kept for the next
# array: pages given back to the system would be cleared and handed out anew in every step.
export GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000}

# Bad input is told here, in one line; the launcher would wrap it in a page of its own.
PADDLE_TRAINERS_NUM=$NPROC "$PYTHON" -m ernie_gram.pretrain --config "$config" "$@" --check >/dev/null
if [ "$NPROC" -eq 1 ] && [ -z "${LAUNCH_ARGS:-}" ]; then
  exec "$PYTHON" -m ernie_gram.pretrain --config "$config" "$@"
fi
# shellcheck disable=SC2086  # LAUNCH_ARGS is a list of words
exec "$PYTHON" -m paddle.distributed.launch --nproc_per_node "$NPROC" --log_dir "${LOG_DIR:-log}" ${LAUNCH_ARGS:-} \
  "$here/ernie_gram/pretrain.py" --config "$config" "$@"
