"""Which run counts: the newest whole one of a set on a kind of machine, never the most flattering one.

A run is whole if it has every shape that older runs of the set have there. One shape that was timed again,
alone, replaces nothing: otherwise losers could be repeated until they win."""

from .problems import Problem, shortened


class Results:
    """All summaries of a folder, asked by machine, threads and set."""

    def __init__(self, summaries: list):
        self._runs = sorted(
            (
                (run["date"], number, summary["machine"], run)
                for number, summary in enumerate(summaries)
                for run in summary["runs"]
            ),
            key=lambda entry: entry[:2],
        )
        self._whole = {}  # (machine, threads, set) -> run
        known = {}
        for _, _, machine, run in self._runs:
            of_run = {}
            for shape in run.get("shapes", []):
                of_run.setdefault((machine, run["threads"], shape["set"]), set()).add(shape["name"])
            for key, names in of_run.items():
                if names >= known.get(key, set()):
                    self._whole[key] = run
                known.setdefault(key, set()).update(names)

    def run_of(self, machine: str, threads: int, set_name: str) -> dict:
        run = self._whole.get((machine, threads, set_name))
        if run is None:
            raise Problem(
                f"tables: found no run of the set {shortened(set_name)} on {machine} with {threads} threads, "
                "expected one in tests/bench/results"
            )
        return run

    def sets(self) -> list:
        """(machine, threads, set) of everything that was measured, sorted."""
        return sorted(self._whole)

    def models(self, machine: str, threads: int) -> list:
        """(run, model) of each model's newest run, by name."""
        newest = {}
        for _, _, of, run in self._runs:
            if of == machine and run.get("threads") == threads:
                newest |= {model["name"]: (run, model) for model in run.get("models", [])}
        return [newest[name] for name in sorted(newest)]
