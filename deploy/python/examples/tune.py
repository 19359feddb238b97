#!/usr/bin/env python3
"""Example: tunes a job file with a daemon and prints what came out.

    tuner serve --listen 127.0.0.1:7070 &
    measure_server --daemon 127.0.0.1:7070 &
    PYTHONPATH=deploy/python python3 deploy/python/examples/tune.py examples/dense.json --trials 64
"""

import argparse
import sys

import tuner


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job_file")
    parser.add_argument("--daemon", default="127.0.0.1:7070", help="HOST:PORT or unix:/path (%(default)s)")
    parser.add_argument("--trials", type=int, help="trials a task, instead of the file's")
    parser.add_argument("--limit", type=float, default=3600, help="seconds to wait for it (%(default)s)")
    options = parser.parse_args()

    def show(event: tuner.Event) -> None:
        if event.progress:
            p = event.progress
            best = f"best {p.best_ns / 1000:.1f} us" if p.best_ns > 0 else "no right answer yet"
            print(f"\r{p.trials_done}/{p.trials_total} trials, {best}", end="", file=sys.stderr)

    try:
        with tuner.Client(options.daemon) as client:
            for job in client.submit(options.job_file, trials=options.trials):
                client.wait(job, timeout_s=options.limit, on_event=show)
            print(file=sys.stderr)
            for answer in client.query(options.job_file):
                print(f"{answer.workload}\n  {answer.kind}: {answer.time_ns / 1000:.2f} us, {answer.template} {answer.config}")
    except tuner.InvalidRequest as error:
        print(f"tune: {error}", file=sys.stderr)
        return 2
    except tuner.Error as error:
        print(f"\ntune: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
