"""Tables and what stands below them as Markdown: a function per kind of table."""

from . import judge, markdown
from .markdown import speed
from .newest import Results
from .notes import day, draw_runs, families, notes
from .problems import Problem
from .selection import Selection, selections
from .tables import LOSS_BELOW, MACHINES, Row, Table

HEADS = {
    "shapes": "shapes",
    "mean": "geometric mean",
    "worst": "worst",
    "both": "geometric mean (worst)",
    "limit": "share, %",
    "against": "against",
    "machine": "on",
    "measured": "measured",
    "scaling": "speed over one thread",
}
HEAD_OF_NETWORKS = ["on", "geometric mean", "worst"]
HEAD_OF_SUMS = ["ours, ms", "libraries, ms", "speed"]
HEAD_OF_MODELS = ["on", "ours, ms", "over ONNX Runtime", "over oneDNN", "first answer, ms", "memory, MB"]
HEAD_OF_LOSSES = ["on", "slower", "the worst"]
HEAD_OF_EVERY_LOSS = ["shape", "on", "speed (95 % interval)", "fastest peer"]
# The table of losses names as many shapes of each set.
WORST_OF_SET = 3


def _on(machine: str, threads: int) -> str:
    return MACHINES[machine] + (f", {threads} threads" if threads > 1 else "")


def _against(selection: Selection) -> str:
    named = sorted({family for run in selection.runs for family in families(run)})
    if not named:
        return "a copy"
    return ", ".join(named) if len(named) < 3 else f"best of {len(named)} libraries"


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
        cells["limit"] = f"{share} of {of}" if of and len(kinds) > 1 else share
    return f"% of {kinds.pop()}" if len(kinds) == 1 else HEADS["limit"]


def _cells(selection: Selection) -> dict:
    figures, scaling = selection.figures(), selection.values("scaling")
    mean, worst = speed(judge.geometric_mean(figures)), speed(min(figures))
    return {
        "shapes": str(len(figures)),
        "mean": mean,
        "worst": worst,
        "both": f"{mean} ({worst})",
        "limit": _limit(selection),
        "scaling": markdown.span(scaling, 2) if scaling else "",
        "against": _against(selection),
        "machine": MACHINES[selection.machine],
        "measured": "; ".join(sorted({day(run) for run in selection.runs})),
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
                "both": over,
                "against": "ONNX Runtime",
                "measured": day(run),
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
        elif not row.sets:
            cells = dict.fromkeys(HEADS, "-") | {"limit": ("-", "")}
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
    return text + ("\n\n" + notes(runs, absent, table.libraries) if table.commands else "")


def draw_beside(results: Results, table: Table) -> str:
    """Sets beside each other: their rows have the same labels in the same order, and as many shapes."""
    each = len(table.rows) // len(table.beside)
    head, lines = [table.head, HEADS["shapes"]], []
    all_runs, all_absent = [], []
    for at, name in enumerate(table.beside):
        rows, limit, runs, absent = _drawn_rows(results, table, table.rows[at * each : (at + 1) * each])
        heads = HEADS | {"limit": limit}
        first, *rest = [heads[column] for column in table.columns]
        # A table whose parts have one column, the mean and the worst, says so above it.
        head += [name] if table.columns == ("both",) else [f"{name}: {first}", *rest]
        lines = lines or [[cells["label"], cells["shapes"]] for cells in rows]
        for line, cells in zip(lines, rows):
            differ = "-" not in (line[1], cells["shapes"]) and line[1] != cells["shapes"]
            if line[0] != cells["label"] or differ:
                raise Problem(
                    f"tables: {table.name}: {name}: found the row {cells['label']} of {cells['shapes']} shapes, "
                    f"expected {line[0]} of {line[1]} as in {table.beside[0]}"
                )
            line += [cells[column] for column in table.columns]
        all_runs, all_absent = all_runs + runs, all_absent + absent
    text = markdown.table(head, lines)
    return text + ("\n\n" + notes(all_runs, all_absent, table.libraries) if table.commands else "")


def draw_networks(results: Results, table: Table) -> str:
    rows, limit, runs, absent = _drawn_rows(results, table, table.rows)
    lines = []
    for row, cells, (machine, run) in zip(table.rows, rows, runs):
        total = next((n for n in judge.networks_of(run) if n["set"] == row.sets[0]), None)
        if total is None:
            raise Problem(
                f"tables: {table.name}: {row.label}: found no convolutions, expected those of a network"
            )
        ours, peers = total["ours_ns"], total["best_peers_ns"]
        ratios = [cells["mean"], cells["worst"], cells["limit"]]
        times = [f"{ours / 1e6:.2f}", f"{peers / 1e6:.2f}", speed(peers / ours)]
        lines.append([row.label, _on(machine, run["threads"]), *ratios, *times])
    head = [table.head, *HEAD_OF_NETWORKS, limit, *HEAD_OF_SUMS]
    return markdown.table(head, lines) + "\n\n" + notes(runs, absent)


def _runs_of_models(machine: str, found: list) -> list:
    """(machine, run) with MODEL for the models of most runs, and the name of one that was made differently."""
    notes_of = [run["note"] for run, _ in found]
    usual = max(sorted(set(notes_of)), key=notes_of.count) if found else ""
    runs = []
    for run, model in found:
        of = {"command": run["command"].replace(f"{model['name']}.onnx", "MODEL.onnx")}
        if run["note"] != usual:
            of["note"] = f"`{model['name']}`: {run['note']}"
        runs.append((machine, run | of))
    return runs


def draw_models(results: Results, table: Table) -> str:
    """Each model on each machine. Of several ways to use a library the faster one counts."""
    rows, runs = {}, []
    for machine in MACHINES:
        found = results.models(machine, table.threads)
        runs += _runs_of_models(machine, found)
        for _, model in found:
            first = min(peer["first_ms"] for peer in model["peers"])
            memory = min(peer["peak_kb"] for peer in model["peers"])
            chains = [chain["ratio"] for chain in model.get("chains", [])]
            rows[model["name"], len(rows)] = [
                f"`{model['name']}`",
                MACHINES[machine],
                markdown.three(model["ns"] / 1e6),
                speed(_over(model)),
                speed(min(chains)) if chains else "-",
                f"{model['first_ms']:.0f}/{first:.0f}",
                f"{model['peak_kb'] / 1e3:.0f}/{memory / 1e3:.0f}",
            ]
    if not rows:
        raise Problem(f"tables: {table.name}: found no model, expected results of bench_model")
    drawn = markdown.table([table.head, *HEAD_OF_MODELS], [rows[key] for key in sorted(rows)])
    return drawn + "\n\n" + notes(runs, [])


def _compared(results: Results) -> list:
    """(machine, run, shape) of every shape of every table, by machine, threads and set, the slowest first."""
    found = {}
    for of in selections(results):
        for run, shape in of.shapes:
            if not of.row.direct:
                key = (list(MACHINES).index(of.machine), of.threads, shape["set"])
                found[(*key, shape["ratio"][0], shape["name"])] = (of.machine, run, shape)
    return [found[place] for place in sorted(found)]


def draw_every_loss(results: Results, table: Table) -> str:
    """Every shape of every table on which we are slower."""
    rows = []
    for machine, run, shape in _compared(results):
        figure, low, high = shape["ratio"]
        if figure < LOSS_BELOW:
            interval = f"{figure:.3f} ({low:.3f}-{high:.3f})"
            on = _on(machine, run["threads"])
            rows.append([f"`{shape['set']}`", shape["name"], on, interval, shape["peer"]])
    return markdown.table([table.head, *HEAD_OF_EVERY_LOSS], rows) if rows else "None."


def draw_losses(results: Results, table: Table) -> str:
    """How many shapes of each set we are slower on, and the worst of them."""
    sets = {}  # (machine, threads, set) -> (speed, name) of each shape, the slowest first
    for machine, run, shape in _compared(results):
        of_set = sets.setdefault((machine, run["threads"], shape["set"]), [])
        of_set.append((shape["ratio"][0], shape["name"]))
    rows = []
    for (machine, threads, name), shapes in sets.items():
        lost = [(figure, of) for figure, of in shapes if figure < LOSS_BELOW]
        if lost:
            worst = ", ".join(f"{of} {speed(figure)}" for figure, of in lost[:WORST_OF_SET])
            rows.append([f"`{name}`", _on(machine, threads), f"{len(lost)} of {len(shapes)}", worst])
    return markdown.table([table.head, *HEAD_OF_LOSSES], rows) if rows else "None."


def draw_build(build: dict) -> str:
    """The sentence of README.md on what a first build takes: minutes, or steps where nobody took the minutes."""
    if minutes := build.get("minutes"):
        when = f"{build['date']}, {build['machine']}" + (", a busy machine" if build["busy"] else "")
        return markdown.paragraph(
            f"On two cores the first build takes {minutes['installed']:.0f} minutes. Building the tests takes "
            f"{minutes['all']:.0f} more minutes, running them {minutes['tests']:.0f} minutes ({when})."
        )
    first, all_steps = (build["steps"][key] for key in ("installed", "all"))
    return markdown.paragraph(
        f"The first build runs about {round(first, -1)} compile and link steps. "
        f"The tests need about {round(all_steps - first, -1)} more steps."
    )


DRAWINGS = {
    "speeds": draw_speeds,
    "beside": draw_beside,
    "networks": draw_networks,
    "models": draw_models,
    "losses": draw_losses,
    "every loss": draw_every_loss,
    "runs": draw_runs,
}


def draw(results: Results, build: dict, table: Table) -> str:
    return draw_build(build) if table.kind == "build" else DRAWINGS[table.kind](results, table)
