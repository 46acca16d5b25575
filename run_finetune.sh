#!/usr/bin/env bash
# Fine-tune a model on a task: run_finetune.sh TASK MODEL [--section.key VALUE ...]
# The tasks: run_finetune.sh --list [--data FOLDER]
# On many settings, seeds or tasks: run_finetune.sh --sweep --help, run_finetune.sh --benchmark --help
#
# TASK is a name of the list, with the settings in conf/tasks/TASK.yaml, or the .yaml file of a task of one's own. MODEL
# is a model folder or a run.
#   DATA         folder with the official files of the task, or the benchmark's folder above it (or --paths.data)
set -euo pipefail
. "$(dirname "$0")/ernie_gram/distributed/launch.sh"
case ${1:-} in
  --help) usage 0 ;;
  --sweep | --benchmark) exec "$PYTHON" -m "tasks.${1#--}" "${@:2}" ;;
  --list) exec "$PYTHON" -m tasks.list ${DATA:+--data "$DATA"} "${@:2}" ;;
esac
[ $# -ge 2 ] || usage 2
task=$1 model=$2
shift 2
# Without a file of settings it is a task of one's own, or an unknown name, to which the registry knows a similar one.
case $task in *.yaml | *.yml) settings= ;; *) settings=$here/conf/tasks/$task.yaml ;; esac
if [ -f "$settings" ]; then options=(--config "$settings"); else options=(--task "$task"); fi
options+=(--paths.model "$model" ${DATA:+--paths.data "$DATA"} "$@")
choose_processes
# A single process reports errors in one line by itself; reading the data twice would take time.
is_single || check_input tasks.finetune "${options[@]}"
launch tasks.finetune "${options[@]}"
