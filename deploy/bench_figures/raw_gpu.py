"""A raw result of bench_gpu as a run of a summary."""

import re

from .rounding import digits4, interval, ns, round_ratios, six

MOST_OTHERS = 5  # other configs of ours that are kept of each shape


def gpu_name(workload: str) -> str:
    """A workload as a table names it: "4096x14336x4096 bfloat16 t", "softmax 4096x4096 float32"."""
    words = workload.split()
    k = dict(word.split("=", 1) for word in words if "=" in word)
    kind, dtype = words[1], k.get("dtype", "")
    try:
        if kind == "matmul":
            batch = "" if k["b"] == "1" else f"{k['b']}x"
            order = ("" if k["ta"] == "0" else " ta") + ("" if k["tb"] == "0" else " t")
            tf32 = " tf32" if k.get("allow_tf32") == "1" else ""
            return f"{batch}{k['m']}x{k['n']}x{k['k']} {dtype}{tf32}{order}"
        if kind == "conv2d":
            stride = k["stride"].split(",")[0]
            window = f"{k['kh']}x{k['kw']}" + ("" if stride == "1" else f"s{stride}")
            return f"{window}_{k['ic']}_{k['oc']}_{k['ih']} n={k['n']} {dtype} {k['layout']}"
        return " ".join(w for w in (kind, k.get("reduction", ""), f"{k['rows']}x{k['columns']}", dtype) if w)
    except KeyError:
        return workload


def _gpu_shape(raw: dict, set_name: str) -> dict:
    peer = raw.get("peer") or {}
    shape = {
        "set": set_name,
        "name": gpu_name(raw["workload"]),
        "group": f"{peer.get('name', 'no peer')}/ours",
        "workload": raw["workload"],
    }
    if "error" in raw:
        return shape | {"error": raw["error"]}
    shape["ns"] = {"ours": ns(raw["time_ns"]["median"])}
    if "ratio_to_ours" in peer:
        shape["ns"][peer["name"]] = ns(peer["time_ns"]["median"])
        shape |= {
            "peer": peer["name"],
            "ratio": interval(peer["ratio_to_ours"], "median"),
            "rounds": round_ratios(peer["ns"], raw["ns"]),
        }
    if note := re.sub(
        r"(; |^)(a weight of its own|the (convolution|product) alone)[^;]*", "", peer.get("note", "")
    ):
        shape["peer_note"] = note
    shape |= {
        "config": f"{raw['template']} {raw['config']}",
        "share_of_peak": round(raw["share_of_ceiling"], 4),
        "ceiling": raw["ceiling"].removesuffix(", measured"),
    }
    if raw.get("others"):
        shape["others"] = [
            [f"{o['template']} {o['config']}", ns(o["time_ns"]["median"])]
            for o in raw["others"]
            if "time_ns" in o
        ][:MOST_OTHERS]
    if raw.get(
        "states"
    ):  # of "1980 MHz, memory 3201 MHz, 46 C, 147 W, throttled by power cap" clock and throttling
        shape["clocks"] = sorted({re.sub(r", memory .* W", "", state) for state in raw["states"]})
    return shape


def run_of(raw: dict, set_name: str) -> dict:
    libraries = [
        f"{name} {raw[key]}"
        for name, key in (("cuBLAS", "cublas"), ("cuBLASLt", "cublaslt"), ("cuDNN", "cudnn"))
        if raw.get(key)
    ]
    run = {
        "threads": 1,
        "rounds": raw["rounds"],
        "batch_ns": raw["batch_ns"],
        "quantile": 0.5,
        "operands": raw["operands"],
        "device": raw["device"],
        "target": raw["arch"],
        "toolchain": raw["pack_about"],
        "libraries": libraries,
        "missing_peers": [],
        "stopped": raw["stopped"],
        "ceilings": {
            key: digits4(raw[key])
            for key in ("copy_gbps", "ffma_gflops", "mma_16bit_gflops", "mma_int8_gops", "mma_tf32_gflops")
            if raw.get(key)
        },
    }
    if "calibration" in raw:
        of = raw["calibration"]
        run["calibration"] = {
            "clock_mhz": digits4(of["clock_mhz"]),
            "ffma_a_clock": digits4(of["ffma_a_clock"]),
            "latency_clocks": {k: digits4(v) for k, v in of["latency_clocks"].items()},
            "shared_128_bit_loads": [
                [p["lanes"], digits4(p["clocks"]), p["passes_by_the_model"]]
                for p in of["shared_128_bit_loads"]
            ],
        }
    run["shapes"] = [_gpu_shape(task, set_name) for task in raw["tasks"]]
    names = [shape["name"] for shape in run["shapes"]]
    for shape in run["shapes"]:  # a name that does not tell two tasks apart gives way to the whole workload
        if names.count(shape["name"]) > 1:
            shape["name"] = shape["workload"]
    run["groups"] = [
        {"group": peer, "geometric_mean": six(mean)} for peer, mean in sorted(raw["geometric_means"].items())
    ]
    return run
