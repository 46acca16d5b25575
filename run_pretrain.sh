#!/usr/bin/env bash
# Pre-train a model: run_pretrain.sh CONFIG [--section.key VALUE ...]. Environment variables:
#   NPROC        number of processes on this machine (default: one per visible GPU, or 1 without a GPU)
#   LAUNCH_ARGS  additional arguments of paddle.distributed.launch, e.g. "--master HOST:PORT --nnodes 4 --rank 0"
#   LOG_DIR      folder for the output of each process, written by the launcher (default: log)
#   PADDLE_VERBOSE=1  show Paddle's own messages as well
set -euo pipefail
if [ $# -lt 1 ] || [ "$1" = "--help" ]; then
  sed -n '2,6s/^# \?//p' "$0"
  exit $(( $# < 1 ? 2 : 0 ))
fi
here=$(cd "$(dirname "$0")" && pwd)
config=$1
shift
PYTHON=${PYTHON:-$([ -x "$here/.venv/bin/python" ] && echo "$here/.venv/bin/python" || echo python)}
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
if [ -n "${CUDA_VISIBLE_DEVICES+set}" ]; then
  # An empty value hides all GPUs; a negative number ends the list of visible GPUs.
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
# hugetlb: large pages for large arrays reduce the time of attention on a CPU by a third. mmap_max and trim_threshold:
# freed memory is kept for the next array. Otherwise the system would take back the pages, and clear and assign them
# again in every step.
export GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000}

# Check the input first, so that an error is one line; the launcher would surround it with a page of its own output.
PADDLE_TRAINERS_NUM=$NPROC "$PYTHON" -m ernie_gram.pretrain --config "$config" "$@" --check >/dev/null
if [ "$NPROC" -eq 1 ] && [ -z "${LAUNCH_ARGS:-}" ]; then
  exec "$PYTHON" -m ernie_gram.pretrain --config "$config" "$@"
fi
# The launcher prints its settings in 36 lines; the errors of the processes are still shown.
case "${PADDLE_VERBOSE:-} ${LAUNCH_ARGS:-}" in 1\ * | *--log_level*) quiet= ;; *) quiet="--log_level ERROR" ;; esac
# As for other outputs, only a relative path may create more than its last level.
LOG_DIR=${LOG_DIR:-log}
case $LOG_DIR in /* | *..*) parents= ;; *) parents=-p ;; esac
# shellcheck disable=SC2086  # `parents` may be empty
if ! { { [ -d "$LOG_DIR" ] || mkdir $parents "$LOG_DIR"; } && [ -w "$LOG_DIR" ]; } 2>/dev/null; then
  echo "error: LOG_DIR: cannot write to the folder $LOG_DIR, or it cannot be created" >&2
  exit 2
fi
# shellcheck disable=SC2086  # LAUNCH_ARGS and `quiet` are lists of words
exec "$PYTHON" -m ernie_gram.distributed.launch $quiet --nproc_per_node "$NPROC" --log_dir "$LOG_DIR" ${LAUNCH_ARGS:-} \
  "$here/ernie_gram/pretrain.py" --config "$config" "$@"
