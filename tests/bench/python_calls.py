#!/usr/bin/env python3
"""python_calls.py [--json FILE]: what a call of a tuned kernel from Python costs, beside numpy.add in the same run.

    PYTHONPATH=build/release/python TUNER_BIN_DIR=build/release/bin /usr/bin/python3 tests/bench/python_calls.py

Tunes the sum of two 64-element arrays, and times loops of calls in turn: numpy.add(x, y, out=z), kernel(x, y, out=z), the same giving
up the GIL, and with DLPack capsules. Each number is the median over the rounds, with the lower and upper quartile. Exit code 1: the
kernel's call takes more than twice numpy's.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

import numpy

import tuner

ROUNDS, CALLS, BOUND = 41, 5000, 2.0


def timed(call):
    begin = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (time.perf_counter_ns() - begin) / CALLS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kernel = tuner.tune("elementwise", rows=1, columns=64, residual=True, trials=4, db=os.path.join(folder, "t.db"))
    x, y, z = (tuner.zeros((1, 64)) for _ in range(3))
    x[...], y[...] = 1, 2
    kernel(x, y, out=z)
    assert float(z[0, 5]) == 3
    capsules = [array.__dlpack__() for array in (x, y, z)]
    kernel.releases_gil = False

    def with_release():
        kernel(x, y, out=z)

    def empty():
        pass
    # The loop's own call of a function is part of each number, as it is of numpy's.
    calls = {"an empty Python function": empty, "numpy.add(x, y, out=z)": lambda: numpy.add(x, y, out=z),
             "kernel(x, y, out=z)": lambda: kernel(x, y, out=z),
             "kernel(x, y, z)": lambda: kernel(x, y, z), "kernel(x, y)": lambda: kernel(x, y),
             "kernel(x, y, out=z), gives up the GIL": with_release, "kernel of DLPack capsules": lambda: kernel(*capsules)}
    times = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            kernel.releases_gil = call is with_release
            times[name].append(timed(call))
    rows = {name: (statistics.median(t), *statistics.quantiles(t, n=4)[::2]) for name, t in times.items()}
    for name, (median, low, high) in rows.items():
        print(f"{name:40} {median:7.0f} ns   {low:7.0f} .. {high:.0f}")
    ratio = statistics.median(b / a for a, b in zip(times["numpy.add(x, y, out=z)"], times["kernel(x, y, out=z)"]))
    print(f"kernel over numpy.add: {ratio:.2f}, at most {BOUND:g}; numpy {numpy.__version__}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"ratio": ratio, "ns": rows, "numpy": numpy.__version__, "python": sys.version.split()[0]}, file, indent=1)
    return 0 if ratio <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
