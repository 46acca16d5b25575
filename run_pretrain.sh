#!/usr/bin/env bash
# Pre-train a model: run_pretrain.sh CONFIG [--section.key VALUE ...]
set -euo pipefail
. "$(dirname "$0")/ernie_gram/distributed/launch.sh"
case ${1:-} in "") usage 2 ;; --help) usage 0 ;; esac
config=$1
shift
choose_processes
check_input ernie_gram.pretrain --config "$config" "$@"
launch ernie_gram.pretrain --config "$config" "$@"
