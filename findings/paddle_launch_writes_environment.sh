#!/usr/bin/env bash
# paddlepaddle 3.3.1, python -m paddle.distributed.launch --log_dir: the whole environment goes into the log folder.
#
# Behaviour: three files of each job hold every environment variable with its value, in three formats, and are readable
# by everybody under the usual umask. Nothing is printed about it.
#
# Why it surprises: a log folder is what one copies into a report, a ticket or a bucket. Tokens for hubs, registries and
# storage reach a training job as environment variables, and a scrubber that knows one format misses the others. Way
# round: a log folder of mode 0700, and env -u for what the job does not need.
#
# Output seen:
# files of a job that prints one word, and whether they hold the value of EXAMPLE_TOKEN:
#     644 backup_env.0.json lines with it: 1
#     644 default.*.log lines with it: 1
#     644 envlog.0 lines with it: 1
#     644 workerlog.0 lines with it: 0
# readable by everybody and with the value: 3; on the terminal: 0
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
echo 'print("trained")' >train.py
umask 022
EXAMPLE_TOKEN=not-a-secret env/bin/python -W ignore -m paddle.distributed.launch \
    --nproc_per_node 1 --log_dir logs train.py >launch.txt 2>&1
echo "files of a job that prints one word, and whether they hold the value of EXAMPLE_TOKEN:"
found=0
for file in logs/*; do
    count=$(grep -c not-a-secret "$file" || true)
    echo "    $(stat -c %a "$file") $(basename "$file" | sed 's/^default\.[a-z]*/default.*/') lines with it: $count"
    if [ "$count" -gt 0 ] && [ "$(stat -c %a "$file")" = 644 ]; then found=$((found + 1)); fi
done
echo "readable by everybody and with the value: $found; on the terminal: $(grep -c not-a-secret launch.txt || true)"
if [ "$found" != 3 ]; then
    echo "the behaviour has changed"
    exit 1
fi
