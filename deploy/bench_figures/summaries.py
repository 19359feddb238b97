"""What is kept of benchmark runs: one file per machine and date in tests/bench/results, DATE-MACHINE.json.

    {"summary": 1, "date": "2026-11-27", "machine": "zen5", "runs": [RUN...]}

A run is one raw result of bench_cpu, bench_gpu or bench_model, as `deploy/figures.py --summarise` reduced it:

    bench, name, date    which program; a name that is unique within the file; when it began, UTC
    command              the command that made it; "" where nobody wrote it down
    busy                 true if others worked on the machine meanwhile
    note                 what else a reader must know; "" mostly
    threads, rounds, target, toolchain, libraries, missing_peers, stopped
    quantile             of the rounds, that is a time: 0.25 or 0.5
    shapes               one line each, below; of bench_model: models; of leave_one_out: layers
    groups, networks     what the program printed. Reading recomputes them from the shapes, and compares
    ceilings, calibration: of bench_gpu, what the device alone reached

A shape:

    set, name, group, uses (1 if absent), workload, level (the cache that holds the operands)
    ns                   the time of each contestant that counts, "ours..." and peers, 7 digits
    not_direct           those of them that are no direct algorithm (Winograd)
    peer, ratio          the fastest peer; its time over ours with its 95 % interval: [figure, low, high]
    rounds               that ratio in each round, 3 decimals
    direct               [peer, figure, low, high] of direct algorithms on both sides, where that is another
                         pair; no_direct: true where there is none
    config, others       of ours; [[config, ns]...] of other configs of ours that were timed beside it
    share_of_peak, share_of_bandwidth, peak_gflops, read_gbps: of the machine in the same rounds
    scaling              with several threads, our time on one over that on all, by the same algorithm
    peak_times_one_core  the same of the peak, which says whether the cores were free
    ceiling, clocks      of GPUs, what share_of_peak is of; clocks that were seen, and throttling
    peer_note            of GPUs, how the peer was called; it is bare, also where ours has bias and activation
    missing, error       peers that could not run it, with the reason; why the shape has no figure

A file is written one shape per line, so that a difference shows which shape changed."""

import json
import os
import pathlib
import re
import tempfile

from . import judge
from .problems import Problem, check, check_fields, is_number, shortened

FORMAT = 1
NAME = re.compile(r"(\d{4}-\d{2}-\d{2})-([a-z0-9][a-z0-9-]*)\.json")
MOST_BYTES = 4 << 20
ONE_PER_LINE = ("shapes", "models", "groups", "networks", "layers")
# What rounding to 6 decimals and 7 digits leaves of a figure.
CLOSE = 3e-6

TEXT, POSITIVE = "a text", "a number above 0"
RUN = {"bench": TEXT, "name": TEXT, "date": TEXT, "command": TEXT, "note": TEXT, "busy": "true or false"}
RUN_OF_SHAPES = {
    "threads": "a whole number from 1",
    "rounds": "a whole number from 1",
    "toolchain": TEXT,
    "libraries": "a list of texts",
    "stopped": TEXT,
    "shapes": "a list of objects",
    "groups": "a list of objects",
}
SHAPE = {"set": TEXT, "name": TEXT, "group": TEXT, "workload": TEXT}
TIMED_SHAPE = {"ns": "an object", "share_of_peak": "a number"}
OPTIONAL_OF_SHAPE = {
    "uses": "a whole number from 1",
    "not_direct": "a list of texts",
    "no_direct": "true or false",
    "share_of_bandwidth": "a number",
    "scaling": POSITIVE,
    "peak_times_one_core": "a number",
    "ceiling": TEXT,
    "error": TEXT,
}
RATIO = {"peer": TEXT, "ratio": "a list of numbers above 0", "rounds": "a list of numbers above 0"}
CONTESTANT_OF_MODEL = {"name": TEXT, "ns": POSITIVE, "ratio": POSITIVE}
ONCE = {"first_ms": POSITIVE, "peak_kb": POSITIVE}


def close(a: float, b: float) -> bool:
    return abs(a - b) <= CLOSE * max(1.0, abs(b))


def _check_interval(value: list, where: str) -> None:
    if len(check(value, "a list of numbers above 0", where)) != 3:
        raise Problem(f"{where}: found {shortened(value)}, expected three numbers: figure, low, high")


def _check_figure(value: float, times: tuple, where: str) -> None:
    """The ratio of two times, as it stands in the file."""
    if not close(value, times[0] / times[1]):
        raise Problem(f"{where}: found {value}, expected {times[0] / times[1]:.6f}, which its times give")


def _check_shape(shape: dict, run: dict, where: str) -> None:
    check_fields(shape, where, SHAPE, OPTIONAL_OF_SHAPE)
    if "error" in shape:
        return
    check_fields(shape, where, TIMED_SHAPE)
    times = shape["ns"]
    check_fields(times, f"{where}: ns", {"ours": POSITIVE} | dict.fromkeys(times, POSITIVE))
    for name in times:
        if not name.strip():
            raise Problem(f"{where}: ns: found a contestant without a name, expected one")
    if "ratio" not in shape:
        return
    check_fields(shape, where, RATIO)
    _check_interval(shape["ratio"], f"{where}: ratio")
    best = judge.fastest(shape, ours=False, direct_only=False)
    if best is None or times.get(shape["peer"]) != best:
        raise Problem(f"{where}: peer: found {shortened(shape['peer'])}, expected the fastest in its ns")
    _check_figure(
        shape["ratio"][0], (best, judge.fastest(shape, ours=True, direct_only=False)), f"{where}: ratio"
    )
    if len(shape["rounds"]) != run["rounds"]:
        raise Problem(
            f"{where}: rounds: found {len(shape['rounds'])} ratios, expected {run['rounds']}, one per round"
        )
    if "direct" in shape:
        direct = shape["direct"]
        if not isinstance(direct, list) or len(direct) != 4 or not isinstance(direct[0], str):
            raise Problem(f"{where}: direct: found {shortened(direct)}, expected [peer, figure, low, high]")
        _check_interval(direct[1:], f"{where}: direct")
        best = [judge.fastest(shape, ours=ours, direct_only=True) for ours in (False, True)]
        if None in best:
            raise Problem(f"{where}: direct: found a figure, expected none: its ns have no direct pair")
        _check_figure(direct[1], best, f"{where}: direct")


def _check_model(model: dict, where: str) -> None:
    check_fields(
        model,
        where,
        {"name": TEXT, "ns": POSITIVE, "peers": "a list of objects"} | ONCE,
        {"chains": "a list of objects"},
    )
    if not model["peers"]:
        raise Problem(f"{where}: peers: found none, expected ONNX Runtime")
    for kind in ("peers", "chains"):
        for peer in model.get(kind, []):
            check_fields(peer, f"{where}: {kind}", CONTESTANT_OF_MODEL | (ONCE if kind == "peers" else {}))
            _check_figure(peer["ratio"], (peer["ns"], model["ns"]), f"{where}: {kind}: {peer['name']}: ratio")


def _compare(found: list, expected: list, key: str, where: str) -> None:
    """`found` stands in the file, as the program printed it; `expected` is recomputed from its shapes."""
    names, right_names = [g.get(key) for g in found], [g[key] for g in expected]
    if names != right_names:
        raise Problem(
            f"{where}: found {shortened(names)}, expected {shortened(right_names)}, those of its shapes"
        )
    for said, counted in zip(found, expected):
        for name, value in said.items():
            right, place = counted.get(name), f"{where}: {said[key]}: {name}"
            if is_number(value) and is_number(right):
                if not close(value, right):
                    raise Problem(f"{place}: found {value}, expected {right:.6f}, which its shapes give")
            elif value != right:
                raise Problem(f"{place}: found {shortened(value)}, expected {shortened(right)}")


def check_run(run: dict, where: str) -> None:
    """Raises Problem unless the run is whole and its figures follow from its shapes."""
    check_fields(run, where, RUN, {"models": "a list of objects"})
    where = f"{where}: {shortened(run['name'])}"
    for i, model in enumerate(run.get("models", [])):
        _check_model(model, f"{where}: models[{i}]")
    if run["bench"] not in ("bench_cpu", "bench_gpu"):
        if "shapes" in run:
            raise Problem(f"{where}: bench: found {shortened(run['bench'])}, expected bench_cpu or bench_gpu")
        return
    check_fields(
        run, where, RUN_OF_SHAPES | ({"networks": "a list of objects"} if run["bench"] == "bench_cpu" else {})
    )
    seen = set()
    for i, shape in enumerate(run["shapes"]):
        place = f"{where}: shapes[{i}]"
        _check_shape(shape, run, place)
        if (shape["set"], shape["name"]) in seen:
            raise Problem(f"{place}: found {shape['set']}/{shape['name']} twice, expected each shape once")
        seen.add((shape["set"], shape["name"]))
    _compare(run["groups"], judge.groups_of(run), "group", f"{where}: groups")
    if run["bench"] == "bench_cpu":
        _compare(run["networks"], judge.networks_of(run), "set", f"{where}: networks")


def check_summary(summary, path: pathlib.Path) -> None:
    where = path.name
    check(summary, "an object", where)
    if kind := summary.get("bench"):
        raise Problem(
            f"{where}: found a raw result of {shortened(kind)}, expected a summary; "
            "run deploy/figures.py --summarise on it, then remove it"
        )
    if summary.get("summary") != FORMAT:
        raise Problem(f"{where}: summary: found {shortened(summary.get('summary'))}, expected {FORMAT}")
    check_fields(summary, where, {"date": TEXT, "machine": TEXT, "runs": "a list of objects"})
    said, named = (summary["date"], summary["machine"]), NAME.fullmatch(where)
    if not named or named.groups() != said:
        raise Problem(f"{where}: found {shortened('-'.join(said))} in it, expected what its name says")
    names = set()
    for i, run in enumerate(summary["runs"]):
        check_run(run, f"{where}: runs[{i}]")
        if run["name"] in names or not run["date"].startswith(said[0]):
            raise Problem(
                f"{where}: runs[{i}]: found {shortened(run['name'])} of {shortened(run['date'])}, "
                f"expected a name of its own and a time on {said[0]}"
            )
        names.add(run["name"])


def read_json(path: pathlib.Path):
    try:
        if path.stat().st_size > MOST_BYTES:
            raise Problem(f"{path.name}: found {path.stat().st_size} bytes, expected at most {MOST_BYTES}")
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Problem(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Problem(
            f"{path.name}: found no JSON ({shortened(str(error))}), expected a whole file; "
            "git checkout brings back a committed one"
        ) from None


def read_summary(path: pathlib.Path) -> dict:
    summary = read_json(path)
    check_summary(summary, path)
    return summary


def read_all(folder: pathlib.Path) -> list:
    """The summaries of a folder, by name. Files with "what" are for other programs."""
    summaries = []
    if not folder.is_dir():
        raise Problem(f"{folder}: found no folder, expected summaries of benchmarks")
    for path in sorted(folder.glob("*.json")):
        content = read_json(path)
        if isinstance(content, dict) and "what" in content:
            continue
        check_summary(content, path)
        summaries.append(content)
    if not summaries:
        raise Problem(
            f"{folder}: found no DATE-MACHINE.json, expected one; deploy/figures.py --summarise writes it"
        )
    return summaries


def _dump(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _run_text(run: dict) -> str:
    lines = []
    for key, value in run.items():
        if key in ONE_PER_LINE and value:
            lines.append(f'  "{key}": [\n    ' + ",\n    ".join(_dump(v) for v in value) + "\n  ]")
        else:
            lines.append(f'  "{key}": {_dump(value)}')
    return "{\n" + ",\n".join(lines) + "\n}"


def summary_text(summary: dict) -> str:
    head = _dump({"summary": FORMAT, "date": summary["date"], "machine": summary["machine"]})
    return head[:-1] + ',"runs":[\n' + ",\n".join(_run_text(run) for run in summary["runs"]) + "\n]}\n"


def write_text(path: pathlib.Path, text: str) -> None:
    """Whole or not at all."""
    scratch = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
        ) as out:
            scratch = out.name
            out.write(text)
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except OSError as error:
        if scratch is not None and os.path.exists(scratch):
            os.unlink(scratch)
        raise OSError(f"{path}: cannot be written: {error.strerror}") from None
