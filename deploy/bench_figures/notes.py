"""How the runs of tables were made: the lines below a table, and the table of all runs."""

import re

from . import markdown
from .newest import Results
from .selection import libraries, selections
from .tables import MACHINES, TABLES

SET = re.compile(r"--set (\S+)")


def day(run: dict) -> str:
    return run["date"][:10] + (", busy" if run["busy"] else "")


def families(run: dict) -> list:
    """The libraries that took part, without versions."""
    return [library.rsplit(" ", 1)[0] for library in libraries(run)]


def _told(run: dict, with_libraries: bool) -> str:
    """What a reader of the table must know of a run. Its versions and trials are in the table of all runs."""
    sets = ", ".join(sorted({f"`{shape['set']}`" for shape in run.get("shapes", [])}))
    stopped = f"{sets} stopped early: {run['stopped']}" if run.get("stopped") else ""
    parts = [", ".join(families(run)) if with_libraries else ""]
    if "shapes" not in run:  # whole models: their note names the libraries
        parts.append(run["note"])
    return "; ".join(part for part in [*parts, stopped] if part)


def _item(place: str, commands: dict) -> tuple:
    """A text, and the texts below it. `commands`: the set of each, what is told of each, and the command."""
    told = ["; ".join(of) for _, of in commands.values()]
    (command, first), *others = commands.values()
    if not others:
        alone = f" ({first[0]})." if len(first) == 1 else ":" if first else "."
        return f"{place}: `{command}`{alone}", first if len(first) > 1 else []
    names_of = {}  # what is told -> the sets
    for name, of in zip(commands, told):
        names_of.setdefault(of, []).append(f"`{name}`")
    sets = [", ".join(names) + (f" ({of})" if of else "") for of, names in names_of.items()]
    return f"{place}: `{SET.sub('--set X', command)}`, X = {'; '.join(sets)}.", []


def notes(runs: list, absent: list, with_libraries: bool = True) -> str:
    """Day, machine, commands and libraries of each (machine, run); what has no figure, and why.

    Commands that differ in their sets are told once."""
    told_of = {}  # (day and machine, the command without its set) -> {set: (command, what else is told)}
    for machine, run in runs:
        command, told = run["command"] or f"the run {run['name']}", _told(run, with_libraries)
        place = f"{day(run)}, {MACHINES[machine]}", SET.sub("", command)
        name = match[1] if (match := SET.search(command)) else ""
        of = told_of.setdefault(place, {}).setdefault(name, (command, []))[1]
        of += [told] if told and told not in of else []
    items = [_item(place, commands) for (place, _), commands in sorted(told_of.items())]
    for _, shape in absent:
        why = shape.get("error") or "the cores were not free"
        items.append((f"No figure for {shape['name']} of `{shape['set']}`: {why}.", []))
    return markdown.bullets(items)


def draw_runs(results: Results, _) -> str:
    """A list of every run that a table shows, with the versions of what took part."""
    runs = {(of.machine, run["date"], run["name"]): run for of in selections(results) for run in of.runs}
    for of in TABLES:
        if of.kind == "models":
            for machine in MACHINES:
                for run, _ in results.models(machine, of.threads):
                    runs[machine, run["date"], run["name"]] = run
    of_summary = {}  # the file that keeps them -> a text of each run
    for machine, date, name in sorted(runs, key=lambda key: (list(MACHINES).index(key[0]), *key[1:])):
        run = runs[machine, date, name]
        told = [", ".join(libraries(run)), run.get("toolchain"), run["note"], run.get("stopped")]
        text = f"`{name}`: `{run['command']}` ({'; '.join(text for text in told if text)})."
        busy = ", busy" if run["busy"] else ""
        of_summary.setdefault(f"{date[:10]}-{machine}.json{busy}:", []).append(text)
    return markdown.bullets(list(of_summary.items()))
