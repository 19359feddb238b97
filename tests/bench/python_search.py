#!/usr/bin/env python3
"""python_search.py [--seeds N]: evaluations until textbook objectives are solved, beside Optuna (Debian's python3-optuna).

    PYTHONPATH=build/release/python /usr/bin/python3 tests/bench/python_search.py

Each objective is a table over a grid, so that its minimum is known. A search has solved it when it is within 1 % of the way from the
minimum to the median. Both get one config at a time and the same values: the objective less its minimum, plus 1. Optuna has its default
sampler (TPE), and its random sampler beside it. Printed: the median over the seeds, and the worst. `>N`: not within N evaluations.
Exit code 1: tuner's median is above Optuna's on some objective. Without Optuna only random search stands beside it.
"""

import argparse
import itertools
import math
import statistics
import sys

import tuner

try:
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
except ImportError:
    optuna = None

MOST = 400


def branin(u, v):
    x, y = -5 + 15 * u / 63, 15 * v / 63
    return (y - 5.1 / (4 * math.pi ** 2) * x * x + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def rosenbrock(u, v):
    x, y = -2 + 4 * u / 63, -1 + 4 * v / 63
    return 100 * (y - x * x) ** 2 + (1 - x) ** 2


def hartmann3(u, v, w):
    a = ((3, 10, 30), (0.1, 10, 35), (3, 10, 30), (0.1, 10, 35))
    p = ((0.3689, 0.117, 0.2673), (0.4699, 0.4387, 0.747), (0.1091, 0.8732, 0.5547), (0.0381, 0.5743, 0.8828))
    x = (u / 15, v / 15, w / 15)
    return -sum(c * math.exp(-sum(a[i][j] * (x[j] - p[i][j]) ** 2 for j in range(3))) for i, c in enumerate((1, 1.2, 3, 3.2)))


OBJECTIVES = {"Branin, 64 x 64": (branin, 64, 2), "Rosenbrock, 64 x 64": (rosenbrock, 64, 2),
              "Hartmann 3, 16 x 16 x 16": (hartmann3, 16, 3)}


def run_tuner(table, goal, extent, dimensions, seed, strategy):
    space = tuner.Space({f"x{i}": range(extent) for i in range(dimensions)})
    search = space.search(strategy, seed=seed)
    for trial in range(1, MOST + 1):
        config = search.ask()[0]
        value = table[tuple(config[f"x{i}"] for i in range(dimensions))]
        if value <= goal:
            return trial
        search.tell(config, value)
    return MOST + 1


def run_optuna(table, goal, extent, dimensions, seed, sampler):
    study = optuna.create_study(sampler=sampler(seed=seed))
    for trial in range(1, MOST + 1):
        asked = study.ask()
        value = table[tuple(asked.suggest_int(f"x{i}", 0, extent - 1) for i in range(dimensions))]
        if value <= goal:
            return trial
        study.tell(asked, value)
    return MOST + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=11)
    options = parser.parse_args()
    searches = {"tuner, bayesian": lambda *given: run_tuner(*given, "bayesian"),
                "tuner, random": lambda *given: run_tuner(*given, "random")}
    if optuna is not None:
        searches["Optuna, TPE"] = lambda *given: run_optuna(*given, optuna.samplers.TPESampler)
        searches["Optuna, random"] = lambda *given: run_optuna(*given, optuna.samplers.RandomSampler)
    print(f"evaluations until solved, median (worst) of {options.seeds} seeds; "
          f"{'Optuna ' + optuna.__version__ if optuna is not None else 'no Optuna here: apt-get install python3-optuna'}")
    worse = False
    for name, (objective, extent, dimensions) in OBJECTIVES.items():
        raw = {point: objective(*point) for point in itertools.product(range(extent), repeat=dimensions)}
        least = min(raw.values())
        table = {point: value - least + 1 for point, value in raw.items()}
        goal = 1 + 0.01 * (statistics.median(table.values()) - 1)
        good = sum(value <= goal for value in table.values())
        print(f"{name}: {good} of {len(table)} points are good")
        medians = {}
        for search, run in searches.items():
            needed = [run(table, goal, extent, dimensions, seed) for seed in range(options.seeds)]
            medians[search] = statistics.median(needed)
            worst = max(needed)
            print(f"  {search:18} {medians[search]:6g}  ({'>' if worst > MOST else ''}{min(worst, MOST)})", flush=True)
        worse = worse or medians["tuner, bayesian"] > medians["Optuna, TPE" if optuna is not None else "tuner, random"]
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
