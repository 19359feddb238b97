"""`deploy/figures.py --show`: a summary as text, shape by shape."""

import pathlib

from . import judge
from .problems import Problem
from .summaries import read_summary


def _shape_line(shape: dict) -> str:
    label = f"{shape['set']:<24} {shape['name']:<34}"
    if "error" in shape:
        return f"  {label} FAILED {shape['error']}"
    share = f"{100 * shape['share_of_peak']:5.1f} % of {shape.get('ceiling', 'the peak')}"
    text = f"  {label} {shape['ns']['ours'] / 1e3:10.2f} us  {share}"
    if "ratio" in shape:
        figure, low, high = shape["ratio"]
        text += f"  {figure:.3f} ({low:.3f} to {high:.3f}) {shape['peer']}"
    if "direct" in shape:
        text += f"; direct {shape['direct'][1]:.3f} {shape['direct'][0]}"
    return text


def _run_lines(run: dict) -> list:
    state = ", busy" if run["busy"] else ""
    lines = [
        f"{run['name']}: {run['bench']}, {run['date']}{state}"
        + (f", {run['command']}" if run["command"] else "")
    ]
    lines += [_shape_line(shape) for shape in run.get("shapes", [])]
    for group in judge.groups_of(run) if "shapes" in run else []:
        lines.append(
            f"  {group['group']}: {group['shapes']} shapes, geometric mean {group['geometric_mean']:.3f}, "
            f"worst {group['worst']:.3f} {group['worst_shape']}"
        )
    for total in judge.networks_of(run) if "shapes" in run else []:
        lines.append(
            f"  {total['layers']} convolutions of {total['set']}: ours {total['ours_ns'] / 1e6:.2f} ms, "
            f"fastest peers {total['best_peers_ns'] / 1e6:.2f} ms"
        )
    for model in run.get("models", []):
        for peer in model["peers"] + model.get("chains", []):
            lines.append(
                f"  {model['name']}: ours {model['ns'] / 1e6:.3f} ms, {peer['ratio']:.3f} {peer['name']}"
            )
    if "calibration" in run:
        lines.append(f"  calibration: {run['calibration']}")
    if "ceilings" in run:
        lines.append(f"  ceilings: {run['ceilings']}")
    return lines


def show(path: pathlib.Path, names: list, results: pathlib.Path) -> int:
    summary = read_summary(path if path.exists() else results / path.name)
    known = [run["name"] for run in summary["runs"]]
    for name in names:
        if name not in known:
            raise Problem(f"{path.name}: found no run {name}, expected one of {', '.join(known)}")
    for run in summary["runs"]:
        if not names or run["name"] in names:
            print("\n".join(_run_lines(run)))
    return 0
