"""Tables and what stands below them as Markdown: a function per kind of table."""

from . import judge, markdown
from .markdown import speed
from .newest import Results
from .problems import Problem
from .selection import Selection, libraries, selections
from .tables import LOSS_BELOW, MACHINES, Row, Table

HEADS = {
    "shapes": "shapes",
    "mean": "geometric mean",
    "worst": "worst",
    "limit": "share of the limit",
    "against": "against",
    "machine": "on",
    "measured": "measured",
    "scaling": "speed over one thread",
}
HEAD_OF_NETWORKS = [
    "on",
    "threads",
    "convolutions",
    "ours, ms",
    "fastest library per layer, ms",
    "speed",
    "measured",
]
HEAD_OF_MODELS = [
    "ours, ms",
    "speed over ONNX Runtime",
    "over oneDNN chained by hand, direct",
    "by Winograd",
    "first answer, ms, ours / ONNX Runtime",
    "memory, MB, ours / ONNX Runtime",
    "measured",
]
HEAD_OF_LOSSES = ["shape", "on", "speed (95 % interval)", "fastest peer", "measured"]


def _day(run: dict) -> str:
    return run["date"][:10] + (", busy" if run["busy"] else "")


def _against(selection: Selection) -> str:
    named = {library for run in selection.runs for library in libraries(run)}
    families = sorted({library.rsplit(" ", 1)[0] for library in named})  # without versions
    if not families:
        return "a copy"
    return ", ".join(families) if len(families) < 3 else f"best of {len(families)} libraries"


def _limit(selection: Selection) -> str:
    if not selection.row.limit:
        return ""
    shares, of = selection.limit()
    return f"{markdown.span([100 * share for share in shares])} % of {of}" if shares else ""


def _cells(selection: Selection) -> dict:
    figures, scaling = selection.figures(), selection.values("scaling")
    return {
        "shapes": str(len(figures)),
        "mean": speed(judge.geometric_mean(figures)),
        "worst": speed(min(figures)),
        "limit": _limit(selection),
        "scaling": markdown.span(scaling, 2) if scaling else "",
        "against": _against(selection),
        "machine": MACHINES[selection.machine],
        "measured": "; ".join(sorted({_day(run) for run in selection.runs})),
    }


def _over(model: dict) -> float:
    """The faster of ONNX Runtime's two ways over ours."""
    return min(peer["ratio"] for peer in model["peers"])


def _cells_of_model(results: Results, row: Row) -> dict:
    for run, model in results.models(row.machine, threads=1):
        if model["name"] == row.model:
            over = speed(_over(model))
            of = {
                "shapes": "1",
                "mean": over,
                "worst": over,
                "against": "ONNX Runtime",
                "measured": _day(run),
            }
            return of | {"machine": MACHINES[row.machine], "limit": "", "scaling": ""}
    raise Problem(
        f"tables: {row.label}: found no model {row.model} on {row.machine}, expected one of bench_model"
    )


def draw_speeds(results: Results, table: Table) -> str:
    rows, runs, absent = [], [], []
    for row in table.rows:
        if row.model:
            cells = _cells_of_model(results, row)
        else:
            selection = Selection(results, table, row)
            cells = _cells(selection)
            runs += selection.runs
            absent += selection.absent
        rows.append([row.label] + [cells[column] for column in table.columns])
    text = markdown.table([table.head] + [HEADS[column] for column in table.columns], rows)
    return text + ("\n\n" + _notes(runs, absent) if table.commands else "")


def draw_networks(results: Results, table: Table) -> str:
    rows = []
    for row in table.rows:
        threads = row.threads or table.threads
        run = results.run_of(row.machine, threads, row.sets[0])
        total = next((n for n in judge.networks_of(run) if n["set"] == row.sets[0]), None)
        if total is None:
            raise Problem(
                f"tables: {table.name}: {row.label}: found no convolutions, expected those of a network"
            )
        ours, peers = total["ours_ns"], total["best_peers_ns"]
        times = [f"{ours / 1e6:.2f}", f"{peers / 1e6:.2f}", speed(peers / ours)]
        rows.append([row.label, MACHINES[row.machine], str(threads), str(total["layers"]), *times, _day(run)])
    return markdown.table([table.head, *HEAD_OF_NETWORKS], rows)


def draw_models(results: Results, table: Table) -> str:
    rows, runs = [], []
    for run, model in results.models(table.machine, table.threads):
        chains = {
            "Winograd" if "Winograd" in c["name"] else "direct": c["ratio"] for c in model.get("chains", [])
        }
        first = min(peer["first_ms"] for peer in model["peers"])
        memory = min(peer["peak_kb"] for peer in model["peers"])
        cells = [f"`{model['name']}`", markdown.three(model["ns"] / 1e6), speed(_over(model))]
        cells += [speed(chains[kind]) if kind in chains else "-" for kind in ("direct", "Winograd")]
        cells += [
            f"{model['first_ms']:.0f} / {first:.0f}",
            f"{model['peak_kb'] / 1e3:.0f} / {memory / 1e3:.0f}",
        ]
        rows.append([*cells, _day(run)])
        runs.append(run)
    if not rows:
        raise Problem(
            f"tables: {table.name}: found no model on {table.machine}, expected results of bench_model"
        )
    return markdown.table([table.head, *HEAD_OF_MODELS], rows) + "\n\n" + _notes(runs, [])


def draw_losses(results: Results, table: Table) -> str:
    """Every shape of every table on which we are slower."""
    lost = {}
    for of in selections(results):
        for run, shape in of.shapes:
            if not of.row.direct and shape["ratio"][0] < LOSS_BELOW:
                place = (
                    list(MACHINES).index(of.machine),
                    of.threads,
                    shape["set"],
                    shape["ratio"][0],
                    shape["name"],
                )
                lost[place] = (of.machine, run, shape)
    rows = []
    for place in sorted(lost):
        machine, run, shape = lost[place]
        figure, low, high = shape["ratio"]
        on = MACHINES[machine] + (f", {run['threads']} threads" if run["threads"] > 1 else "")
        interval = f"{figure:.3f} ({low:.3f} to {high:.3f})"
        rows.append([f"`{shape['set']}`", shape["name"], on, interval, shape["peer"], _day(run)])
    return markdown.table([table.head, *HEAD_OF_LOSSES], rows) if rows else "None."


def _notes(runs: list, absent: list) -> str:
    """Day, state of the machine, commands and libraries of each run; what has no figure, and why."""
    commands = {}
    for run in runs:
        told = [", ".join(libraries(run)), run.get("toolchain", ""), run["note"], run.get("stopped", "")]
        alike = commands.setdefault((_day(run), "; ".join(text for text in told if text)), {})
        alike[f"`{run['command']}`" if run["command"] else f"the run `{run['name']}`"] = None
    items = []
    for (day, told), alike in sorted(commands.items(), key=lambda item: item[0]):
        items.append(f"{day}: {', '.join(alike)}" + (f" ({told})." if told else "."))
    for _, shape in absent:
        why = shape.get("error") or "the cores were not free"
        items.append(f"No figure for {shape['name']} of `{shape['set']}`: {why}.")
    return markdown.bullets(items)


def draw_build(build: dict) -> str:
    """The sentence of README.md on what a first build takes."""
    first, rest = (
        round(n, -1)
        for n in (build["steps"]["installed"], build["steps"]["all"] - build["steps"]["installed"])
    )
    text = f"The first build has about {first} steps. The tests need about {rest} more."
    if minutes := build.get("minutes"):
        when = f"{build['date']}, {build['machine']}" + (", a busy machine" if build["busy"] else "")
        text += (
            f" On two cores the build takes {minutes['installed']:.0f} minutes. Building the tests takes "
            f"{minutes['all']:.0f} minutes more, and running them {minutes['tests']:.0f} ({when})."
        )
    return markdown.paragraph(text)


DRAWINGS = {"speeds": draw_speeds, "networks": draw_networks, "models": draw_models, "losses": draw_losses}


def draw(results: Results, build: dict, table: Table) -> str:
    return draw_build(build) if table.kind == "build" else DRAWINGS[table.kind](results, table)
