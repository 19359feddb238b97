"""Raw results of bench_cpu, bench_gpu, bench_model and leave_one_out become runs of a summary.

What a program printed is kept as `groups` and `networks`. summaries.check_run() recomputes them from what is
left of the shapes, so that a reduction that lost or changed a figure is refused."""

import re

from . import raw_cpu, raw_gpu
from .problems import Problem, check, shortened
from .rounding import ns, six


def _model_run(raw: dict) -> dict:
    model = {
        "name": raw["model"].removesuffix(".onnx"),
        "ns": ns(raw["ours_ns"]),
        "sum_of_steps_ns": ns(raw["sum_of_steps_ns"]),
        "error": float(f"{raw['error']:.3g}"),
    }
    model |= {key: round(value, 2) if key == "first_ms" else value for key, value in raw["ours_once"].items()}
    model["peers"] = [
        {
            "name": p["name"],
            "ns": ns(p["ns"]),
            "ratio": six(p["ratio"]),
            "interval": [round(p["ratio_low"], 4), round(p["ratio_high"], 4)],
            "first_ms": round(p["first_ms"], 2),
            "peak_kb": p["peak_kb"],
        }
        for p in raw["peers"]
    ]
    if "chains" in raw:
        model["chains"] = [
            {"name": c["name"], "ns": ns(c["ns"]), "ratio": six(c["ratio"])} for c in raw["chains"]
        ]
    return {"threads": raw["threads"], "rounds": raw["rounds"], "models": [model]}


def _leave_one_out_run(raw: list) -> dict:
    layers = []
    for layer in raw:
        ways = {w["name"]: w for w in layer["ways"]}
        answer = ways["answer"]
        layers.append(
            {
                "workload": layer["workload"],
                "ns": {name: ns(w["ns"]) for name, w in ways.items()},
                "answer": answer["config"],
                "predicted": round(answer["predicted"], 4),
                "interval": [round(answer["low"], 4), round(answer["high"], 4)],
            }
        )
    return {"layers": layers}


def kind_of(raw) -> str:
    if isinstance(raw, list) and raw and isinstance(raw[0], dict) and "ways" in raw[0]:
        return "leave_one_out"
    if isinstance(raw, dict):
        if raw.get("bench") in ("bench_cpu", "bench_gpu"):
            return raw["bench"]
        if "model" in raw and "ours_ns" in raw:
            return "bench_model"
    return ""


def run_of(raw, name: str, said: dict) -> dict:
    """The run of one raw result. `said` has what none tells: date (bench_model), command, busy, note, set."""
    bench = kind_of(raw)
    if not bench:
        raise Problem(
            f"{name}: found {shortened(raw)}, expected what bench_cpu, bench_gpu, bench_model or "
            "leave_one_out write with --json"
        )
    date = raw.get("date") if isinstance(raw, dict) else None
    date = check(date or said["date"], "a text", f"{name}: date")
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}(T\d\d:\d\d:\d\dZ)?", date):
        raise Problem(
            f"{name}: date: found {shortened(date)}, expected 2026-11-27 or 2026-11-27T08:00:00Z; "
            "--date says it for a result that does not"
        )
    head = {
        "bench": bench,
        "name": name,
        "date": date,
        "command": said["command"],
        "busy": said["busy"],
        "note": said["note"],
    }
    try:
        if bench == "bench_cpu":
            return head | raw_cpu.run_of(raw)
        if bench == "bench_gpu":
            return head | raw_gpu.run_of(raw, said["set"] or name)
        if bench == "bench_model":
            return head | _model_run(raw)
        return head | _leave_one_out_run(raw)
    except (
        KeyError,
        TypeError,
        AttributeError,
        ValueError,
        IndexError,
        StopIteration,
        ZeroDivisionError,
    ) as error:
        raise Problem(
            f"{name}: found {type(error).__name__} {shortened(str(error))} where {bench} writes a figure; "
            "expected a whole result, as the program wrote it"
        ) from None
