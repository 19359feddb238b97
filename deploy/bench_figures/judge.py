"""Figures of a run out of its shapes, as bench_cpu and bench_gpu count them (tests/bench/cpu/report.cpp).

Pure arithmetic. `deploy/figures.py` recomputes with it what those programs printed, and compares."""

import math


def quantile(samples, level: float) -> float:
    """Type 7 of Hyndman and Fan, as compiler_core/base/statistics.h has it."""
    ordered = sorted(samples)
    at = (len(ordered) - 1) * level
    below = int(at)
    return ordered[below] + (at - below) * (ordered[min(below + 1, len(ordered) - 1)] - ordered[below])


def geometric_mean(values) -> float:
    return math.exp(sum(math.log(v) for v in values) / len(values))


def counts(shape: dict, threads: int) -> bool:
    """Whether the shape has a figure: it has a peer, and several threads had cores of their own."""
    free = threads == 1 or shape.get("peak_times_one_core", 0) >= 0.96 * threads
    return "ratio" in shape and free


def direct_ratio(shape: dict):
    """Our fastest direct kernel against the fastest direct one of the peers; None without such a pair."""
    if "direct" in shape:
        return shape["direct"][1]
    return None if "no_direct" in shape else shape["ratio"][0]


def groups_of(run: dict) -> list:
    """One entry per group of shapes, sorted by name: what bench_cpu prints at its end."""
    by_group = {}
    for shape in run["shapes"]:
        if counts(shape, run["threads"]):
            by_group.setdefault(shape["group"], []).append(shape)
    groups = []
    for name in sorted(by_group):
        shapes = by_group[name]
        worst = min(shapes, key=lambda s: s["ratio"][0])
        group = {
            "group": name,
            "shapes": len(shapes),
            "geometric_mean": geometric_mean([s["ratio"][0] for s in shapes]),
            "worst": worst["ratio"][0],
            "worst_shape": worst["name"],
        }
        direct = [s for s in shapes if direct_ratio(s) is not None]
        if direct:
            worst = min(direct, key=direct_ratio)
            group |= {
                "direct_geometric_mean": geometric_mean([direct_ratio(s) for s in direct]),
                "direct_worst": direct_ratio(worst),
                "direct_worst_shape": worst["name"],
            }
        groups.append(group)
    return groups


def fastest(shape: dict, ours: bool, direct_only: bool):
    """The least time of ours or of the peers, in ns; None if there is none of the kind."""
    times = [
        ns
        for name, ns in shape["ns"].items()
        if name.startswith("ours") == ours and not (direct_only and name in shape.get("not_direct", []))
    ]
    return min(times, default=None)


def networks_of(run: dict) -> list:
    """The sum over the convolutions of each set, each as often as the network uses it, in ns."""
    sums = []
    for shape in run["shapes"]:
        if "error" in shape or not counts(shape, run["threads"]) or " conv2d " not in shape["workload"]:
            continue
        times = {
            "ours_ns": fastest(shape, True, False),
            "ours_direct_ns": fastest(shape, True, True),
            "best_peers_ns": fastest(shape, False, False),
            "best_direct_peers_ns": fastest(shape, False, True),
        }
        if None in times.values():
            continue
        if not sums or sums[-1]["set"] != shape["set"]:
            sums.append({"set": shape["set"], "layers": 0} | dict.fromkeys(times, 0))
        uses = shape.get("uses", 1)
        sums[-1]["layers"] += uses
        for key, ns in times.items():
            sums[-1][key] += uses * ns
    return sums
