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
    "limit": "share of the limit, %",
    "against": "against",
    "machine": "on",
    "measured": "measured",
    "scaling": "speed over one thread",
}
HEAD_OF_NETWORKS = ["on", "ours, ms", "fastest library per layer, ms", "speed", "measured"]
HEAD_OF_MODELS = [
    "ours, ms",
    "over ONNX Runtime",
    "over oneDNN, direct",
    "over oneDNN, Winograd",
    "first answer, ms",
    "memory, MB",
]
HEAD_OF_LOSSES = ["shape", "on", "speed (95 % interval)", "fastest peer"]


def _day(run: dict) -> str:
    return run["date"][:10] + (", busy" if run["busy"] else "")


def _on(machine: str, threads: int) -> str:
    return MACHINES[machine] + (f", {threads} threads" if threads > 1 else "")


def _against(selection: Selection) -> str:
    named = {library for run in selection.runs for library in libraries(run)}
    families = sorted({library.rsplit(" ", 1)[0] for library in named})  # without versions
    if not families:
        return "a copy"
    return ", ".join(families) if len(families) < 3 else f"best of {len(families)} libraries"


def _limit(selection: Selection) -> tuple:
    """The range of percentages, and what they are of; two empty texts if there are none."""
    if not selection.row.limit:
        return "", ""
    shares, of = selection.limit()
    return (markdown.span([100 * share for share in shares]), of) if shares else ("", "")


def _join_limits(rows: list) -> str:
    """Makes a text of each row's "limit" and returns the head of the column, which has what all rows share."""
    kinds = {of for _, of in (cells["limit"] for cells in rows) if of}
    for cells in rows:
        share, of = cells["limit"]
        cells["limit"] = f"{share} of {of}" if share and len(kinds) > 1 else share
    return f"% of {kinds.pop()}" if len(kinds) == 1 else HEADS["limit"]


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
            return of | {"machine": MACHINES[row.machine], "limit": ("", ""), "scaling": ""}
    raise Problem(
        f"tables: {row.label}: found no model {row.model} on {row.machine}, expected one of bench_model"
    )


def _drawn_rows(results: Results, table: Table, of: tuple) -> tuple:
    """The cells of some of the table's rows, the head of their limits, their (machine, run)s, and what is absent."""
    rows, runs, absent = [], [], []
    for row in of:
        if row.model:
            cells = _cells_of_model(results, row)
        else:
            selection = Selection(results, table, row)
            cells = _cells(selection)
            runs += [(selection.machine, run) for run in selection.runs]
            absent += selection.absent
        rows.append({"label": row.label} | cells)
    return rows, _join_limits(rows), runs, absent


def draw_speeds(results: Results, table: Table) -> str:
    rows, limit, runs, absent = _drawn_rows(results, table, table.rows)
    heads = HEADS | {"limit": limit}
    text = markdown.table(
        [table.head] + [heads[column] for column in table.columns],
        [[cells[column] for column in ("label", *table.columns)] for cells in rows],
    )
    return text + ("\n\n" + _notes(runs, absent) if table.commands else "")


def draw_beside(results: Results, table: Table) -> str:
    """Sets beside each other: their rows have the same labels in the same order."""
    each = len(table.rows) // len(table.beside)
    head, lines = [table.head, HEADS["shapes"]], []
    all_runs, all_absent = [], []
    for at, name in enumerate(table.beside):
        rows, limit, runs, absent = _drawn_rows(results, table, table.rows[at * each : (at + 1) * each])
        heads = HEADS | {"limit": limit}
        first, *rest = [heads[column] for column in table.columns]
        head += [f"{name}: {first}", *rest]
        lines = lines or [[cells["label"], cells["shapes"]] for cells in rows]
        for line, cells in zip(lines, rows):
            if line[:2] != [cells["label"], cells["shapes"]]:
                raise Problem(
                    f"tables: {table.name}: {name}: found the row {cells['label']} of {cells['shapes']} shapes, "
                    f"expected {line[0]} of {line[1]} as in {table.beside[0]}"
                )
            line += [cells[column] for column in table.columns]
        all_runs, all_absent = all_runs + runs, all_absent + absent
    return markdown.table(head, lines) + "\n\n" + _notes(all_runs, all_absent)


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
        rows.append([row.label, _on(row.machine, threads), *times, _day(run)])
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
        rows.append(cells)
        runs.append((table.machine, run))
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
        interval = f"{figure:.3f} ({low:.3f}-{high:.3f})"
        on = _on(machine, run["threads"])
        rows.append([f"`{shape['set']}`", shape["name"], on, interval, shape["peer"]])
    return markdown.table([table.head, *HEAD_OF_LOSSES], rows) if rows else "None."


def _joined(commands: list) -> str:
    """Commands that differ in one word are told once."""
    words = [command.split(" ") for command in commands]
    differing = [values for values in zip(*words) if len(set(values)) > 1]
    if len({len(of) for of in words}) > 1 or len(differing) != 1:
        return ", ".join(f"`{command}`" for command in commands)
    same = " ".join(values[0] if len(set(values)) == 1 else "X" for values in zip(*words))
    return f"`{same}` with X = {', '.join(f'`{value}`' for value in differing[0])}"


def _notes(runs: list, absent: list) -> str:
    """Day, machine, commands and libraries of each (machine, run); what has no figure, and why."""
    commands = {}  # (day and machine, what else is told) -> the commands
    for machine, run in runs:
        told = [", ".join(libraries(run)), run.get("toolchain", ""), run["note"], run.get("stopped", "")]
        place = f"{_day(run)}, {MACHINES[machine]}", "; ".join(text for text in told if text)
        commands.setdefault(place, {})[run["command"] or f"the run {run['name']}"] = None
    told_of = {}  # (day and machine, commands) -> what else is told
    for (place, told), alike in sorted(commands.items(), key=lambda item: item[0]):
        told_of.setdefault((place, _joined(list(alike))), []).extend([told] if told else [])
    items = []
    for (place, alike), told in told_of.items():
        alone = f" ({told[0]})." if len(told) == 1 else ":" if told else "."
        items.append((f"{place}: {alike}{alone}", told if len(told) > 1 else []))
    for _, shape in absent:
        why = shape.get("error") or "the cores were not free"
        items.append((f"No figure for {shape['name']} of `{shape['set']}`: {why}.", []))
    return markdown.bullets(items)


def draw_build(build: dict) -> str:
    """The sentence of README.md on what a first build takes."""
    first, rest = (
        round(n, -1)
        for n in (build["steps"]["installed"], build["steps"]["all"] - build["steps"]["installed"])
    )
    text = f"The first build runs about {first} compile and link steps. The tests need about {rest} more steps."
    if minutes := build.get("minutes"):
        when = f"{build['date']}, {build['machine']}" + (", a busy machine" if build["busy"] else "")
        text += (
            f" On two cores the first build takes {minutes['installed']:.0f} minutes. Building the tests takes "
            f"{minutes['all']:.0f} minutes, running them {minutes['tests']:.0f} minutes ({when})."
        )
    return markdown.paragraph(text)


DRAWINGS = {
    "speeds": draw_speeds,
    "beside": draw_beside,
    "networks": draw_networks,
    "models": draw_models,
    "losses": draw_losses,
}


def draw(results: Results, build: dict, table: Table) -> str:
    return draw_build(build) if table.kind == "build" else DRAWINGS[table.kind](results, table)
