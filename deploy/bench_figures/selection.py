"""The shapes of one row of a table, with the runs they are from; newest.py says which runs count."""

from . import judge
from .newest import Results
from .problems import Problem
from .tables import BANDWIDTH, NOT_SHOWN, TABLES, Row, Table


class Selection:
    """`shapes` have a figure; those of `absent` do not. Both are lists of (run, shape)."""

    def __init__(self, results: Results, table: Table, row: Row):
        self.row = row
        self.machine, self.threads = row.machine or table.machine, row.threads or table.threads
        self.runs, self.shapes, self.absent = [], [], []
        for name in row.sets:
            run = results.run_of(self.machine, self.threads, name)
            if run not in self.runs:
                self.runs.append(run)
            for shape in run["shapes"]:
                if shape["set"] == name and self._has(shape):
                    counted = judge.counts(shape, self.threads) and self.figure(shape) is not None
                    (self.shapes if counted else self.absent).append((run, shape))
        if not self.shapes:
            raise Problem(
                f"tables: {table.name}: {row.label}: found no shape with a figure in {', '.join(row.sets)}, "
                "expected some; sets, groups and names are those of bench_cpu --list"
            )

    def _has(self, shape: dict) -> bool:
        in_group = not self.row.groups or shape["group"] in self.row.groups
        return in_group and (not self.row.names or shape["name"] in self.row.names)

    def figure(self, shape: dict):
        """Our speed over the fastest peer's; None if direct algorithms are asked for and there are none."""
        return judge.direct_ratio(shape) if self.row.direct else shape["ratio"][0]

    def figures(self) -> list:
        return [self.figure(shape) for _, shape in self.shapes]

    def values(self, key: str) -> list:
        return [shape[key] for _, shape in self.shapes if key in shape]

    def limit(self) -> tuple:
        """Shares of the row's limit, and what they are of; Winograd's work is not what is counted."""
        key, shares = self.row.limit, []
        for _, shape in self.shapes:
            if key not in shape:
                raise Problem(
                    f"tables: {self.row.label}: found no {key} of {shape['name']}, expected one of each shape"
                )
            if "ours" not in shape.get("not_direct", []):
                shares.append(shape[key])
            elif self.row.direct:
                shares.append(
                    shape[key] * shape["ns"]["ours"] / judge.fastest(shape, ours=True, direct_only=True)
                )
        ceilings = " or ".join(sorted(set(self.values("ceiling"))))
        return shares, ceilings or ("reads" if key == BANDWIDTH else "peak")


def libraries(run: dict) -> list:
    """Those that took part, with the versions that the run tells."""
    families = set()
    for shape in run.get("shapes", []):
        families |= {name.split()[0] for name in shape.get("ns", {}) if not name.startswith("ours")}
    named = [library for library in run.get("libraries", []) if library.split()[0] in families]
    return named + sorted(families - {"copy"} - {library.split()[0] for library in named})


def selections(results: Results) -> list:
    """What all tables of speeds show."""
    tables = [table for table in TABLES if table.kind in ("speeds", "beside", "networks")]
    return [Selection(results, table, row) for table in tables for row in table.rows if row.sets]


def check_all_is_shown(results: Results) -> None:
    """What was measured stands in a table, or in NOT_SHOWN with the reason: no loss is left out."""
    shown = set()
    for of in selections(results):
        shown |= {(of.machine, of.threads, shape["set"], shape["name"]) for _, shape in of.shapes}
    for machine, threads, name in results.sets():
        for shape in results.run_of(machine, threads, name)["shapes"]:
            if shape["set"] != name or not judge.counts(shape, threads):
                continue
            place = f"{name}/{shape['name']}"
            if (machine, threads, name, shape["name"]) not in shown and not NOT_SHOWN.keys() & {name, place}:
                raise Problem(
                    f"tables: found no row with {place} of {machine} ({threads} threads); "
                    "it was measured, expected one in bench_figures/tables.py, or the reason in its NOT_SHOWN"
                )
