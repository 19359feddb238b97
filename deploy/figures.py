#!/usr/bin/env python3
"""figures.py: fills the tables of README.md, docs/*.md and tests/bench/RESULTS.md from the summaries in
tests/bench/results.

    deploy/figures.py                  rewrites the pages
    deploy/figures.py --check [DIR]    prints what would change, exit code 1 if anything would; with a build
                                       folder also whether the number of build steps is near that of its graph
    deploy/figures.py --summarise RAW.json... --machine zen5 --command "bench_cpu --set cubes" [--busy]
                                       adds raw results of bench_cpu, bench_gpu, bench_model or leave_one_out
                                       to the summary of their machine and date
    deploy/figures.py --show DATE-MACHINE.json [RUN...]
                                       prints the shapes, groups and sums of its runs
    deploy/figures.py --measure-build  builds a clone of HEAD on two cores, runs its tests, keeps the minutes
    CCACHE_DISABLE=1 .ci/run | tee LOG && deploy/figures.py --record-build LOG
                                       keeps the minutes that CI took in a clean clone on two cores
    deploy/figures.py --record-steps DIR
                                       keeps the steps alone, from the graph of a build folder

What a summary has: bench_figures/summaries.py. What the tables show: bench_figures/tables.py.
Exit code 1: a page differs, or a file cannot be written; 2: wrong use, or a file that is damaged.
"""

import argparse
import pathlib
import re
import subprocess
import sys

from bench_figures import build, pages, raw_results, show, summaries
from bench_figures.drawing import draw
from bench_figures.newest import Results
from bench_figures.problems import Problem
from bench_figures.selection import check_all_is_shown
from bench_figures.tables import TABLES

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Arguments(argparse.ArgumentParser):
    def error(self, message):
        raise Problem(f"{message}; deploy/figures.py --help lists what there is")


def parse(words: list) -> argparse.Namespace:
    parser = Arguments(
        prog="figures.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=True,
        allow_abbrev=False,
    )
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--check", nargs="?", const="", metavar="BUILD_DIR")
    does.add_argument("--summarise", nargs="+", metavar="RAW.json")
    does.add_argument("--show", nargs="+", metavar="FILE")
    does.add_argument("--measure-build", action="store_true")
    does.add_argument("--record-build", metavar="LOG", type=pathlib.Path)
    does.add_argument("--record-steps", metavar="BUILD_DIR")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="another tree, for tests")
    of = parser.add_argument_group("--summarise")
    of.add_argument("-o", dest="out", type=pathlib.Path, help="folder of summaries (tests/bench/results)")
    of.add_argument("--machine", default="", help="zen5, intel-amx, h200 ...; needed")
    of.add_argument("--command", default="", help="the command that made the results")
    of.add_argument("--busy", action="store_true", help="others worked on the machine meanwhile")
    of.add_argument("--note", default="", help="what else a reader of the figures must know")
    of.add_argument("--date", default="", help="when, for results that do not say it (bench_model)")
    of.add_argument(
        "--name", default="", help="of the run, where one file is given (its name without date and machine)"
    )
    of.add_argument("--set", default="", help="of bench_gpu: the set that the tasks are of (the run's name)")
    options = parser.parse_args(words)
    for name in ("machine", "command", "note", "date", "name", "set", "out", "busy"):
        if getattr(options, name) and not options.summarise:
            raise Problem(
                f"found {'-o' if name == 'out' else '--' + name}, expected --summarise RAW.json with it"
            )
    return options


def page_paths(root: pathlib.Path) -> list:
    pages_of_docs = sorted((root / "docs").glob("*.md"))
    return [root / "README.md", *pages_of_docs, root / "tests" / "bench" / "RESULTS.md"]


def filled_pages(root: pathlib.Path) -> list:
    """(path, text, text with every region filled) of each page."""
    folder = root / "tests" / "bench" / "results"
    results, of_build = Results(summaries.read_all(folder)), build.read(folder)
    check_all_is_shown(results)
    made = {table.name: draw(results, of_build, table) for table in TABLES}
    texts, used = [], []
    for path in page_paths(root):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Problem(f"{path}: cannot be read: {error}") from None
        texts.append((path, text, pages.fill(str(path.relative_to(root)), text, made)))
        used += pages.names_in(text)
    if unused := sorted(set(made) - set(used)):
        raise Problem(
            f"tables: found no page with {', '.join(unused)}, expected <!-- figures: {unused[0]} --> in one"
        )
    return texts


def rewrite(root: pathlib.Path) -> int:
    for path, old, new in filled_pages(root):
        if new != old:
            summaries.write_text(path, new)
            print(f"figures: {path.relative_to(root)} has changed")
    return 0


def check(root: pathlib.Path, build_folder: str) -> int:
    differences = [
        pages.difference(str(path.relative_to(root)), old, new)
        for path, old, new in filled_pages(root)
        if new != old
    ]
    sys.stdout.write("".join(differences))
    if differences:
        print(
            "figures: the pages above are not what tests/bench/results says; deploy/figures.py rewrites them",
            file=sys.stderr,
        )
    differs = build_folder and build.steps_differ(
        build.read(root / "tests" / "bench" / "results"), pathlib.Path(build_folder)
    )
    if differs:
        print(f"figures: {differs}", file=sys.stderr)
    return 1 if differences or differs else 0


def summarise(options: argparse.Namespace) -> int:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", options.machine):
        raise Problem(
            f"--machine: found {options.machine!r}, expected small letters, digits and -, such as zen5"
        )
    if options.name and len(options.summarise) > 1:
        raise Problem(f"--name: found {len(options.summarise)} results for it, expected one")
    folder = options.out or options.root / "tests" / "bench" / "results"
    if not folder.is_dir():
        raise Problem(f"-o: found no folder {folder}, expected one")
    said = {key: getattr(options, key) for key in ("date", "command", "busy", "note", "set")}
    changed = {}
    for word in options.summarise:
        raw = pathlib.Path(word)
        name = options.name or re.sub(rf"^\d{{4}}-\d\d-\d\d-|{re.escape(options.machine)}-", "", raw.stem)
        run = raw_results.run_of(summaries.read_json(raw), name, said)
        path = folder / f"{run['date'][:10]}-{options.machine}.json"
        if path not in changed:
            empty = {
                "summary": summaries.FORMAT,
                "date": run["date"][:10],
                "machine": options.machine,
                "runs": [],
            }
            changed[path] = summaries.read_summary(path) if path.exists() else empty
        kept = changed[path]["runs"]
        changed[path]["runs"] = sorted(
            [r for r in kept if r["name"] != name] + [run], key=lambda r: (r["date"], r["name"])
        )
        again = "again " if len(kept) == len(changed[path]["runs"]) else ""
        print(f"figures: {raw.name} is {again}run {name} of {path.name}")
    for path, summary in changed.items():
        summaries.check_summary(summary, path)
    for path, summary in changed.items():
        summaries.write_text(path, summaries.summary_text(summary))
    return 0


def main(words: list) -> int:
    options = parse(words)
    results = options.root / "tests" / "bench" / "results"
    if options.summarise:
        return summarise(options)
    if options.show:
        return show.show(pathlib.Path(options.show[0]), options.show[1:], results)
    if options.record_build:
        build.record_log(results, options.record_build)
        return rewrite(options.root)
    if options.record_steps:
        build.record_steps(results, pathlib.Path(options.record_steps))
        return rewrite(options.root)
    if options.measure_build:
        build.measure(options.root, results)
        return rewrite(options.root)
    return check(options.root, options.check) if options.check is not None else rewrite(options.root)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Problem as problem:
        print(f"figures: {problem}", file=sys.stderr)
        sys.exit(2)
    except (OSError, subprocess.SubprocessError) as problem:
        print(f"figures: {problem}", file=sys.stderr)
        sys.exit(1)
