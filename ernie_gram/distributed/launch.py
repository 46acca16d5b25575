"""Start the processes of a job: `python -m ernie_gram.distributed.launch`, with the options of Paddle's launcher.

It differs from Paddle's command in four ways: Paddle is loaded without its messages; there may be more ranks than GPUs,
for a job on CPUs; a rank that dies or hangs ends the job, with its name and the reason on the console; and SIGTERM and
SIGINT reach each rank once and are given the time that the ranks need to save (see watch.py).
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.distributed.launch")

from ernie_gram.distributed.loading import forget_own_threads, prepare_environment, quiet

prepare_environment()
with quiet():
    from ernie_gram.distributed.watched_launch import launch_watched as main
forget_own_threads()

__all__ = ["main"]
