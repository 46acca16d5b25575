"""Start the processes of a job: `python -m ernie_gram.distributed.launch`, with the options of Paddle's launcher.

It differs from Paddle's command only in that Paddle is loaded without its messages.
"""

from __future__ import annotations

from ernie_gram.distributed.world import quiet

if __name__ == "__main__":
    with quiet():
        from paddle.distributed.launch.main import launch
    launch()
