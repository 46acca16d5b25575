#!/usr/bin/env bash
# paddlepaddle 3.3.1, paddle.distributed on CPUs (gloo): a process that is late for an exchange.
#
# Behaviour: an exchange whose other process is more than 30 seconds late ends with an error of gloo, and nothing that
# Paddle documents sets this time: `new_group(timeout=...)` with two minutes changes nothing. On GPUs, NCCL waits.
#
# Why it surprises: writing a large checkpoint, evaluating, or reading a file on one process only, while the others go on
# to the next exchange, works in tests and ends a job as soon as its files are large. The message names a buffer of gloo and
# no process. Way round: let the processes that wait exchange a number every second.
#
# Output seen:
# 20 seconds late: ok
# 40 seconds late: error after 30 s: TIMEOUT
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
cat >late.py <<'EOF'
import os
import re
import sys
import time
from datetime import timedelta

import paddle
import paddle.distributed as dist

dist.init_parallel_env()
group = dist.new_group([0, 1], timeout=timedelta(minutes=2))
dist.all_reduce(paddle.ones([1]), group=group)
began, seconds = time.monotonic(), int(sys.argv[1])
if dist.get_rank() == 1:
    time.sleep(seconds)
try:
    dist.all_reduce(paddle.ones([1]), group=group)
    found = "ok"
except Exception as error:
    message = re.search(r"TIMEOUT|$", str(error))[0]
    found = f"error after {time.monotonic() - began:.0f} s: {message or error}"
if dist.get_rank() == 0:
    print(f"{seconds} seconds late: {found}", flush=True)
os._exit(0)
EOF
for seconds in 20 40; do
  GLOG_minloglevel=3 OMP_NUM_THREADS=1 PADDLE_DISTRI_BACKEND=gloo env/bin/python -W ignore -m paddle.distributed.launch \
    --nproc_per_node 2 --log_dir "log$seconds" late.py "$seconds" >out 2>&1 || true
  grep -h "seconds late" "log$seconds/workerlog.0" out | head -n 1 | tee -a seen
done
grep -qx "20 seconds late: ok" seen
grep -q "^40 seconds late: error after \(29\|30\|31\|32\) s: TIMEOUT" seen
