"""A raw result of bench_cpu, formats 1 and 2, as a run of a summary."""

from . import judge
from .rounding import digits4, interval, ns, numbers, round_ratios


def _rate(probes: list, part: str, level: float):
    for probe in probes:
        if part in probe["name"]:
            return digits4(probe["work_a_call"] / judge.quantile(probe["ns"], level))
    return None


def _cpu_shape(raw: dict, level: float) -> dict:
    shape = {key: raw[key] for key in ("set", "name", "group", "uses", "workload", "level")}
    if shape["uses"] == 1:
        del shape["uses"]
    if raw["missing"]:
        shape["missing"] = {m["name"]: m["why"] for m in raw["missing"]}
    if "error" in raw:
        return shape | {"error": raw["error"]}
    every = {kind: [c for c in raw["contestants"] if c["kind"] == kind] for kind in ("ours", "peer", "probe")}
    counted = every["ours"] + every["peer"]
    shape["ns"] = {c["name"]: ns(c["time_ns"]["middle"]) for c in counted}
    if not_direct := [c["name"] for c in counted if c["algorithm"] != "direct"]:
        shape["not_direct"] = not_direct
    ours = min(every["ours"], key=lambda c: c["time_ns"]["middle"])
    if best := raw["best_peer_over_ours"]:
        peer = next(c for c in every["peer"] if c["name"] == best["peer"])
        shape |= {
            "peer": best["peer"],
            "ratio": interval(best["ratio"], "middle"),
            "rounds": round_ratios(peer["ns"], ours["ns"]),
        }
        direct = raw["best_direct_peer_over_ours_direct"]
        if direct is None:
            shape["no_direct"] = True
        elif direct != best:
            shape["direct"] = [direct["peer"]] + interval(direct["ratio"], "middle")
    shape["config"] = ours["detail"]
    shape["share_of_peak"] = round(raw.get("share_of_peak", raw.get("share_of_fma_peak")), 4)
    shape["share_of_bandwidth"] = round(raw["share_of_read_bandwidth"], 4)
    for key, part in (
        ("peak_gflops", "peak of all cores"),
        ("peak_gflops", "peak of one core"),
        ("read_gbps", "read "),
    ):
        rate = _rate(every["probe"], part, level)
        if rate is not None:
            shape.setdefault(key, rate)
    for name in ("peak_times_one_core", "fma_peak_times_one_core"):
        if name in raw:
            shape["peak_times_one_core"] = round(raw[name], 4)
    if scaling := _scaling(raw["contestants"], every["ours"]):
        shape["scaling"] = round(scaling, 4)
    return shape


def _scaling(contestants: list, ours: list):
    """Our time on one thread over that on several, by the same algorithm; None without such a pair."""
    one = [c for c in contestants if c["name"] == "ours, 1 thread"]
    same = [c["time_ns"]["middle"] for c in ours if one and c["algorithm"] == one[0]["algorithm"]]
    return one[0]["time_ns"]["middle"] / min(same) if same else None


def run_of(raw: dict) -> dict:
    level = raw["quantile_of_rounds"]
    libraries = raw["libraries"] if "libraries" in raw else [f"oneDNN {raw['onednn']}"]
    return {
        "threads": raw["threads"],
        "rounds": raw["rounds"],
        "batch_ns": raw["batch_ns"],
        "quantile": level,
        "operands": raw["operands"],
        "cpu": raw["cpu"],
        "target": raw["target"],
        "toolchain": raw["toolchain"],
        "libraries": libraries,
        "missing_peers": [m["name"] for m in raw["missing_peers"]],
        "stopped": raw["stopped"],
        "shapes": [_cpu_shape(shape, level) for shape in raw["shapes"]],
        "groups": [_without_zeros(numbers(g)) for g in sorted(raw["groups"], key=lambda g: g["group"])],
        "networks": [numbers(n) for n in raw["networks"]],
    }


def _without_zeros(group: dict) -> dict:
    """A group without a direct pair has zeros there."""
    if group["direct_geometric_mean"] == 0:
        return {key: value for key, value in group.items() if not key.startswith("direct_")}
    return group
