"""What was found: a file with one line per result, which makes a run resumable; a report; a table."""

import dataclasses
import json
import pathlib
import statistics

from . import Problem, trying

LEAST_KILLED = {"hand": 0.95, "seed": 0.85}


class Results:
    """WORK/results.jsonl. The last line of a fault counts."""

    def __init__(self, path: pathlib.Path):
        self.path, self.known = path, {}
        if not path.exists():
            return
        for number, line in enumerate(path.read_text().splitlines(), 1):
            try:
                result = trying.Result(**json.loads(line))
            except (ValueError, TypeError) as error:
                raise Problem(f"{path}:{number}: {error}; remove the line, or the file to begin anew") from error
            self.known[result.key()] = result

    def add(self, result: trying.Result) -> None:
        self.known[result.key()] = result
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(dataclasses.asdict(result)) + "\n")


def write(path: pathlib.Path, results: list) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"report": 1, "summary": summary(results), "faults": [dataclasses.asdict(r) for r in results]}, indent=1) + "\n")


def summary(results: list) -> dict:
    hows = ("killed", "survived", "not compiled", "too slow", "equivalent")
    counts = {how: sum(r.how == how for r in results) for how in hows}
    judged = counts["killed"] + counts["survived"]
    took = [r.seconds for r in results if r.how in ("killed", "survived")]
    return counts | {"killed_share": round(counts["killed"] / judged, 4) if judged else None,
                     "median_seconds": round(statistics.median(took), 1) if took else None}


def one_line(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[:most - 3] + "..."


def line_of(result: trying.Result) -> str:
    change = f"{one_line(result.text, 46)} -> {one_line(result.becomes, 46) or '(nothing)'}"
    by = f" by {result.test}" if result.test else ""
    return f"{result.how}{by}, {result.seconds:.0f} s: {result.file}:{result.line}: {change}"


def show(results: list, say) -> bool:
    """Prints folders, survivors and the sum. True when enough were killed."""
    folders = sorted({r.folder for r in results})
    say(f"{'folder':32} killed survived not compiled equivalent")
    for folder in folders:
        own = [r for r in results if r.folder == folder]
        counts = summary(own)
        say(f"{folder:32} {counts['killed']:6} {counts['survived']:8} {counts['not compiled'] + counts['too slow']:12} {counts['equivalent']:10}")
    for result in results:
        if result.how in ("survived", "too slow"):
            say(line_of(result))
    right = True
    for source, least in LEAST_KILLED.items():
        own = [r for r in results if r.source.startswith(source)]
        counts = summary(own)
        if counts["killed_share"] is None:
            continue
        say(f"{'hand-made' if source == 'hand' else 'drawn'}: {counts['killed']} of {counts['killed'] + counts['survived']} killed, "
            f"{100 * counts['killed_share']:.1f} %, expected at least {100 * least:.0f} %; median {counts['median_seconds']} s; "
            f"{counts['not compiled']} not compiled, {counts['too slow']} too slow, {counts['equivalent']} equivalent")
        right = right and counts["killed_share"] >= least
    return right
