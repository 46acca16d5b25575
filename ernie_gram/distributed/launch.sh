# shellcheck shell=bash
# Common part of the launchers, which source this file: run a command of this project in one or several processes.
# Environment variables:
#   NPROC        number of processes on this machine (default: one per visible GPU, or 1 without a GPU)
#   LAUNCH_ARGS  additional arguments of paddle.distributed.launch, e.g. "--master HOST:PORT --nnodes 4 --rank 0"
#   LOG_DIR      folder for the output of each process, written by the launcher (default: log)
#   PADDLE_VERBOSE=1  show Paddle's own messages as well
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
PYTHON=${PYTHON:-$([ -x "$here/.venv/bin/python" ] && echo "$here/.venv/bin/python" || echo python)}
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"

# Print the launcher's first comment and the environment variables; exit with the status $1.
usage() {
  sed -n '2,/^[^#]/s/^# \?//p' "$0"
  sed -n '/^# Environment/,/^[^#]/s/^# \?//p' "${BASH_SOURCE[0]}"
  exit "$1"
}

# Set NPROC, and the number of threads of each process.
choose_processes() {
  local gpus
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
}

# Whether one process is started, without Paddle's launcher.
is_single() {
  [ "$NPROC" -eq 1 ] && [ -z "${LAUNCH_ARGS:-}" ]
}

# Check the input of `python -m ARGUMENTS`, so that an error is one line; Paddle's launcher would surround it with a page
# of its own output.
check_input() {
  PADDLE_TRAINERS_NUM=$NPROC "$PYTHON" -m "$@" --check >/dev/null
}

# Replace this shell by `python -m ARGUMENTS` in NPROC processes.
launch() {
  local script="$here/${1//.//}.py" quiet parents
  # hugetlb: large pages for large arrays reduce the time of attention on a CPU by a third. mmap_max and trim_threshold:
  # freed memory is kept for the next array. Otherwise the system would take back the pages, and clear and assign them
  # again in every step.
  export GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000}
  if is_single; then
    exec "$PYTHON" -m "$@"
  fi
  shift
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
  exec "$PYTHON" -m ernie_gram.distributed.launch $quiet --nproc_per_node "$NPROC" --log_dir "$LOG_DIR" \
    ${LAUNCH_ARGS:-} "$script" "$@"
}
