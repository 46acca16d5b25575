# shellcheck shell=bash
# Common part of the launchers, which source this file: run a command of this project in one or several processes.
# Environment variables:
#   NPROC        number of processes on this machine (default: one per GPU that Paddle sees, or 1 without a GPU)
#   LAUNCH_ARGS  additional arguments of paddle.distributed.launch, e.g. "--master HOST:PORT --nnodes 4 --rank 0"; in a
#                job step of Slurm (srun) with several tasks, these three are set from Slurm's variables
#   LOG_DIR      folder for the output of each process, written by the launcher (default: log); with --nnodes, each
#                machine writes into the subfolder machine_RANK
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

# Print an error and exit.
fail() {
  echo "error: $1" >&2
  exit 2
}

# Set NPROC, the number of threads of each process, and LAUNCH_ARGS.
choose_processes() {
  if [ -z "${NPROC:-}" ]; then
    NPROC=$("$PYTHON" -m ernie_gram.distributed.count_gpus)
    [ "$NPROC" != 0 ] || NPROC=1
  fi
  [[ $NPROC =~ ^[1-9][0-9]*$ ]] || fail "NPROC: $NPROC is not a number of processes"
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$(( $(nproc) > NPROC ? $(nproc) / NPROC : 1 ))}
  join_slurm_step
  find_master
}

# In a job step of Slurm with several tasks, set LAUNCH_ARGS: each task is one machine for Paddle's launcher, and the
# first machine is the master. The port follows from the job, so that jobs on the same machine do not meet.
join_slurm_step() {
  local host tasks=${SLURM_STEP_NUM_TASKS:-1}
  if [ -z "${SLURM_STEP_NUM_TASKS:-}" ] && [ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ]; then
    echo "note: the Slurm job has $SLURM_JOB_NUM_NODES machines, but only this one is used; start the command with srun" >&2
  fi
  if [ "$tasks" -eq 1 ] || [[ ${LAUNCH_ARGS:-} == *--master* ]]; then
    return
  fi
  if [ "$NPROC" -gt 1 ] && [ "$tasks" -gt "${SLURM_STEP_NUM_NODES:-$tasks}" ]; then
    fail "NPROC: $NPROC processes in each of several Slurm tasks per machine; use srun --ntasks-per-node=1, or NPROC=1"
  fi
  read -r host < <(scontrol show hostnames "$SLURM_STEP_NODELIST") ||
    fail "SLURM_STEP_NODELIST: scontrol cannot read $SLURM_STEP_NODELIST; set LAUNCH_ARGS instead"
  LAUNCH_ARGS="--master $host:$(( 20000 + (SLURM_JOB_ID + ${SLURM_STEP_ID:-0}) % 10000 )) --nnodes $tasks \
    --rank $SLURM_PROCID ${LAUNCH_ARGS:-}"
}

# Print the value of the option $1 in LAUNCH_ARGS, or $2 without one.
launch_argument() {
  [[ " ${LAUNCH_ARGS:-}" =~ [[:space:]]$1[[:space:]=]+([^[:space:]]+) ]] && echo "${BASH_REMATCH[1]}" || echo "$2"
}

# Replace the master's name in LAUNCH_ARGS by its address, and let the first machine have this address. Otherwise
# Paddle's launcher on the first machine may not see that it is the master, and all machines wait for ever.
find_master() {
  local master host address
  master=$(launch_argument --master "")
  case $master in
    "" | *://*) return ;;
    *:*) host=${master%:*} ;;
    *) fail "LAUNCH_ARGS: --master $master: must be HOST:PORT" ;;
  esac
  read -r address _ < <(getent ahostsv4 "$host") || fail "LAUNCH_ARGS: --master $master: no address is known for $host"
  if [[ $address == 127.* && $host != localhost && $host != "$address" ]]; then
    fail "LAUNCH_ARGS: --master $master: $host is $address on this machine, which others cannot reach; give its address"
  fi
  LAUNCH_ARGS=${LAUNCH_ARGS/"$master"/"$address:${master##*:}"}
  if [ "$(launch_argument --rank "")" = 0 ]; then
    LAUNCH_ARGS="--host $address $LAUNCH_ARGS"
  fi
}

# Whether one process is started, without Paddle's launcher.
is_single() {
  [ "$NPROC" -eq 1 ] && [ -z "${LAUNCH_ARGS:-}" ]
}

# Check the input of `python -m ARGUMENTS`, so that an error is one line; Paddle's launcher would surround it with a page
# of its own output. Warnings are left to the run.
check_input() {
  local rank machines
  rank=$(launch_argument --rank 0) machines=$(launch_argument --nnodes 1)
  # `machines` may be a range, MIN:MAX.
  PADDLE_TRAINERS_NUM=$(( NPROC * ${machines%%:*} )) PADDLE_TRAINER_ID=$(( rank * NPROC )) PADDLE_LOCAL_SIZE=$NPROC \
    NO_WARNINGS=1 "$PYTHON" -m "$@" --check >/dev/null
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
  # Another machine may create it at the same time.
  # shellcheck disable=SC2086  # `parents` may be empty
  { { mkdir $parents "$LOG_DIR" || [ -d "$LOG_DIR" ]; } && [ -w "$LOG_DIR" ]; } 2>/dev/null ||
    fail "LOG_DIR: cannot write to the folder $LOG_DIR, or it cannot be created"
  # The machines share storage, and each numbers its processes from 0.
  if [ "$(launch_argument --nnodes 1)" != 1 ]; then
    LOG_DIR+=/machine_$(launch_argument --rank "$(hostname)")
  fi
  # shellcheck disable=SC2086  # LAUNCH_ARGS and `quiet` are lists of words
  exec "$PYTHON" -m ernie_gram.distributed.launch $quiet --nproc_per_node "$NPROC" --log_dir "$LOG_DIR" \
    ${LAUNCH_ARGS:-} "$script" "$@"
}
