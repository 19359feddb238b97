"""deploy/figures.py: a changed page is found, the newest whole run counts, figures are those counted by hand,
and a damaged summary ends it with one line."""

import copy
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import unittest

from figures_cases import RESULTS, SOURCE, copy_of_the_tree, figures, run, shape, summary

import unit_tests
from bench_figures import build, drawing, judge, markdown, pages, selection, summaries, tables
from bench_figures.newest import Results
from bench_figures.problems import Problem

ROW = tables.Row("all", ("net",))


def table(*rows, columns=("shapes", "mean", "worst", "measured"), **more):
    return tables.Table("some", "speeds", "set", columns, rows, **({"machine": "zen5"} | more))


def cells(results: Results, drawn: tables.Table) -> list:
    """The rows below the head of a drawn table, without its notes."""
    lines = drawing.draw(results, {}, drawn).split("\n\n")[0].split("\n")[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


class Figures(unittest.TestCase):
    def test_mean_and_worst_are_those_counted_by_hand(self):
        # 1.6 * 0.9 = 1.44 = 1.2^2
        results = Results(
            [
                summary(
                    "2026-12-01",
                    [
                        run(
                            "r",
                            "2026-12-01",
                            [shape("a", 1000, {"fast": 1600, "slow": 9000}), shape("b", 1000, {"fast": 900})],
                        )
                    ],
                )
            ]
        )
        self.assertEqual(cells(results, table(ROW)), [["all", "2", "1.20", "**0.90**", "2026-12-01"]])

    def test_a_loss_that_two_decimals_hide_has_three(self):
        self.assertEqual(
            [markdown.speed(v) for v in (0.9964, 1.0, 1.004, 0.994, 2.5)],
            ["**0.996**", "1.00", "1.00", "**0.99**", "2.50"],
        )

    def test_direct_is_compared_with_direct(self):
        winograd = shape("a", 500, {"fast": 1000}, not_direct=["ours"], direct=["fast", 0.8, 0.8, 0.8])
        winograd["ns"]["ours direct"] = 1250
        results = Results([summary("2026-12-01", [run("r", "2026-12-01", [winograd])])])
        direct = tables.Row("direct", ("net",), direct=True, limit=tables.PEAK)
        drawn = cells(results, table(ROW, direct, columns=("mean", "limit")))
        # half of the peak with Winograd's 500 ns are 0.2 of it in 1250 ns
        self.assertEqual(drawn, [["all", "2.00", ""], ["direct", "**0.80**", "20"]])

    def test_the_head_says_what_shares_are_of_if_all_rows_agree(self):
        shapes = [shape("a", 1000, {"fast": 1600}, share_of_bandwidth=0.9)]
        results = Results([summary("2026-12-01", [run("r", "2026-12-01", shapes)])])
        peak, reads = (tables.Row("row", ("net",), limit=limit) for limit in (tables.PEAK, tables.BANDWIDTH))
        for rows, head, texts in (
            ((peak, peak), "% of peak", ["50", "50"]),
            ((reads, ROW), "% of reads", ["90", ""]),
            ((peak, reads), "share, %", ["50 of peak", "90 of reads"]),
        ):
            drawn = table(*rows, columns=("limit",))
            self.assertIn(f"| set | {head} |\n", drawing.draw(results, {}, drawn))
            self.assertEqual([row[1] for row in cells(results, drawn)], texts)

    def test_shapes_without_free_cores_and_failed_ones_are_in_no_mean_and_are_told(self):
        free, taken = (
            shape(name, 1000, {"fast": ns}, peak_times_one_core=cores)
            for name, ns, cores in (("free", 1500, 1.95), ("taken", 9000, 1.5))
        )
        failed = {"set": "net", "name": "failed", "group": "some", "workload": "v1", "error": "a deadline"}
        results = Results([summary("2026-12-01", [run("r", "2026-12-01", [free, taken, failed], threads=2)])])
        text = drawing.draw(results, {}, table(ROW, threads=2))
        self.assertIn("| all | 1 | 1.50 | 1.50 | 2026-12-01 |", text)
        self.assertIn("- No figure for taken of `net`: the cores were not free.", text)
        self.assertIn("- No figure for failed of `net`: a deadline.", text)

    def test_a_network_is_the_sum_of_its_layers_as_often_as_they_are_used(self):
        layers = [
            shape("a", 1000, {"fast": 2000}, uses=3, workload="v1 conv2d x"),
            shape("b", 500, {"fast": 400}, workload="v1 conv2d x"),
        ]
        (total,) = judge.networks_of(run("r", "2026-12-01", layers))
        self.assertEqual((total["layers"], total["ours_ns"], total["best_peers_ns"]), (4, 3500, 6400))

    def test_notes_name_day_machine_command_libraries_and_whether_it_was_busy(self):
        results = Results(
            [
                summary(
                    "2026-12-01",
                    [run("r", "2026-12-01", [shape("a", 10, {"fast": 11, "other x": 12})], busy=True)],
                )
            ]
        )
        self.assertIn(
            "- 2026-12-01, busy, Zen 5: `bench_cpu r` (fast, other).",
            drawing.draw(results, {}, table(ROW)),
        )

    def test_sets_stand_beside_each_other_row_by_row(self):
        def drawn(second: str, *shapes_of_second) -> str:
            shapes = [shape("a", 1000, {"fast": 1600}, set_name="one"), *shapes_of_second]
            rows = (tables.Row("all", ("one",)), tables.Row(second, ("two",), limit=tables.PEAK))
            both = table(*rows, columns=("mean", "limit"), beside=("first", "second"))
            both = dataclasses.replace(both, kind="beside")
            return drawing.draw(Results([summary("2026-12-01", [run("r", "2026-12-01", shapes)])]), {}, both)

        shapes = [shape(name, 1000, {"fast": 900}, set_name="two") for name in "ab"]
        self.assertEqual(
            drawn("all", shapes[0]),
            "| set | shapes | first: geometric mean | share, % | second: geometric mean | % of peak |\n"
            "|---|---|---|---|---|---|\n"
            "| all | 1 | 1.60 |  | **0.90** | 50 |\n\n"
            "- 2026-12-01, Zen 5: `bench_cpu r` (fast).",
        )
        with self.assertRaisesRegex(Problem, "second: found the row other of 1 shapes, expected all of 1"):
            drawn("other", shapes[0])
        with self.assertRaisesRegex(Problem, "second: found the row all of 2 shapes, expected all of 1"):
            drawn("all", *shapes)

    def notes(self, *runs) -> str:
        """Of a table with a row per run, each (command, library) with a set of its own."""
        made = [
            run(f"r{i}", "2026-12-01", [shape("a", 10, {library: 11}, set_name=f"set{i}")], command=command)
            for i, (command, library) in enumerate(runs)
        ]
        rows = [tables.Row("row", (f"set{i}",)) for i in range(len(runs))]
        return drawing.draw(Results([summary("2026-12-01", made)]), {}, table(*rows)).split("\n\n")[1]

    def test_commands_that_differ_in_their_sets_are_told_once(self):
        first, second = "bench --set one --rounds 4", "bench --set two --rounds 4"
        self.assertEqual(
            self.notes((first, "fast"), (second, "fast")),
            "- 2026-12-01, Zen 5: `bench --set X --rounds 4`, X = `one`, `two` (fast).",
        )
        self.assertEqual(
            self.notes((first, "fast"), (second, "slow"), ("bench --set three --rounds 4", "fast")),
            "- 2026-12-01, Zen 5: `bench --set X --rounds 4`, X = `one`, `three` (fast); `two` (slow).",
        )
        for other in ("bench --set two --rounds 5", "bench --set one --rounds 4 --quick"):
            self.assertEqual(
                sorted(self.notes((first, "fast"), (other, "fast")).split("\n")),
                sorted(f"- 2026-12-01, Zen 5: `{command}` (fast)." for command in (first, other)),
            )

    def test_a_command_that_ran_with_several_libraries_has_a_line_for_each(self):
        self.assertEqual(
            self.notes(("bench", "old"), ("bench", "new")),
            "- 2026-12-01, Zen 5: `bench`:\n  - old\n  - new",
        )

    def test_a_run_that_stopped_early_says_so_below_its_table(self):
        stopped = run("r", "2026-12-01", [shape("a", 10, {"fast": 11})], stopped="a deadline")
        self.assertIn(
            "- 2026-12-01, Zen 5: `bench_cpu r` (fast; `net` stopped early: a deadline).",
            drawing.draw(Results([summary("2026-12-01", [stopped])]), {}, table(ROW)),
        )

    def test_a_part_without_such_shapes_has_dashes(self):
        shapes = [shape("a", 1000, {"fast": 1600})]
        results = Results([summary("2026-12-01", [run("r", "2026-12-01", shapes)])])
        for rows in ((ROW, tables.Row("all", ())), (tables.Row("all", ()), ROW)):
            both = table(*rows, columns=("both",), beside=("first", "second"))
            drawn = cells(results, dataclasses.replace(both, kind="beside"))
            self.assertEqual(sorted(drawn[0][2:]), ["-", "1.60 (1.60)"])

    def test_a_network_has_the_figures_of_its_shapes_beside_its_sum(self):
        # 2 / 1 and 9 / 10: the mean is sqrt(1.8); the sum is (3 * 2000 + 900) / (3 * 1000 + 1000) us
        layers = [
            shape("a", 1e6, {"fast": 2e6}, uses=3, workload="v1 conv2d x", share_of_peak=0.9),
            shape("b", 1e6, {"fast": 9e5}, workload="v1 conv2d x", share_of_peak=0.4),
        ]
        results = Results([summary("2026-12-01", [run("r", "2026-12-01", layers)])])
        drawn = dataclasses.replace(table(tables.Row("sum", ("net",), limit=tables.PEAK)), kind="networks")
        self.assertEqual(
            cells(results, drawn), [["sum", "Zen 5", "1.34", "**0.90**", "40-90", "4.00", "6.90", "1.73"]]
        )

    def test_of_several_ways_to_use_a_library_the_faster_one_counts(self):
        def model(name: str, note: str, **more) -> dict:
            peers = [
                {"name": way, "ratio": ratio, "first_ms": 70, "peak_kb": 9000}
                for way, ratio in (("defaults", 1.5), ("all", 1.4))
            ]
            of = {"name": name, "ns": 3e6, "first_ms": 14, "peak_kb": 8000, "peers": peers} | more
            kept = run(name, "2026-12-01", [], models=[of], note=note, command=f"bench_model {name}.onnx DIR")
            return {key: value for key, value in kept.items() if key != "shapes"}

        chains = [{"name": "oneDNN", "ratio": 1.3}, {"name": "oneDNN Winograd", "ratio": 0.95}]
        runs = [model("net", "usual"), model("vgg", "usual", chains=chains), model("yolo", "short")]
        drawn = dataclasses.replace(table(), kind="models")
        results = Results([summary("2026-12-01", runs)])
        self.assertEqual(
            cells(results, drawn)[:2],
            [
                ["`net`", "Zen 5", "3.00", "1.40", "-", "14/70", "8/9"],
                ["`vgg`", "Zen 5", "3.00", "1.40", "**0.95**", "14/70", "8/9"],
            ],
        )
        self.assertIn(
            "- 2026-12-01, Zen 5: `bench_model MODEL.onnx DIR`:\n  - usual\n  - `yolo`: short",
            drawing.draw(results, {}, drawn),
        )


class Newest(unittest.TestCase):
    old = run("a", "2026-12-01", [shape("x", 10, {"fast": 20}), shape("y", 10, {"fast": 20})])

    def drawn(self, *others, **more):
        return cells(
            Results([summary("2026-12-02", [*others]), summary("2026-12-01", [self.old])]), table(ROW, **more)
        )[0]

    def test_a_newer_slower_run_counts(self):
        slower = run("a", "2026-12-02", [shape("x", 20, {"fast": 20}), shape("y", 20, {"fast": 20})])
        self.assertEqual(self.drawn(slower), ["all", "2", "1.00", "1.00", "2026-12-02"])

    def test_of_one_day_the_later_one_counts(self):
        first, second = (
            run(
                name,
                f"2026-12-02T{hour}:00:00Z",
                [shape("x", ns, {"fast": 20}), shape("y", ns, {"fast": 20})],
            )
            for name, hour, ns in (("z", "09", 10), ("a", "10", 20))
        )
        self.assertEqual(self.drawn(second, first)[2], "1.00")

    def test_one_shape_timed_again_replaces_nothing(self):
        again = run("again", "2026-12-02", [shape("x", 1, {"fast": 20})])
        self.assertEqual(self.drawn(again), ["all", "2", "2.00", "2.00", "2026-12-01"])

    def test_other_machines_and_threads_are_other_results(self):
        shapes = [
            shape("x", 20, {"fast": 20}, peak_times_one_core=2),
            shape("y", 20, {"fast": 20}, peak_times_one_core=2),
        ]
        self.assertEqual(self.drawn(run("two", "2026-12-02", shapes, threads=2))[2], "2.00")
        results = Results(
            [
                summary("2026-12-01", [self.old]),
                summary("2026-12-02", [run("b", "2026-12-02", shapes)], "h200"),
            ]
        )
        self.assertEqual(cells(results, table(ROW))[0][2], "2.00")

    def test_a_set_that_nobody_measured_is_a_line(self):
        with self.assertRaisesRegex(Problem, "found no run of the set 'net' on zen5 with 3 threads"):
            self.drawn(threads=3)

    def test_a_measured_set_that_no_table_shows_is_a_line(self):
        hidden = summary(
            "2026-12-01", [run("r", "2026-12-01", [shape("a", 10, {"fast": 5}, set_name="hidden")])]
        )
        committed = summaries.read_all(SOURCE / RESULTS)
        selection.check_all_is_shown(Results(committed))
        with self.assertRaisesRegex(Problem, "found no row with hidden/a of zen5"):
            selection.check_all_is_shown(Results([*committed, hidden]))


class Pages(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = copy_of_the_tree(pathlib.Path(self.scratch.name) / "tree")
        self.addCleanup(self.scratch.cleanup)

    def change(self, path: str, old: str, new: str):
        text = (self.root / path).read_text()
        self.assertIn(old, text)
        (self.root / path).write_text(text.replace(old, new, 1))

    def test_committed_pages_are_what_the_summaries_say(self):
        ran = figures("--check", root=self.root)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))

    def test_a_flattered_figure_is_found_and_mended(self):
        row = re.search(r"\| matmul, float32 \| H200 .*", (self.root / "README.md").read_text())[0]
        flattered = row.replace("**0.91**", "1.31")
        self.assertNotEqual(row, flattered)
        before = (self.root / "README.md").read_text()
        self.change("README.md", row, flattered)
        ran = figures("--check", root=self.root)
        self.assertEqual(ran.returncode, 1)
        self.assertIn(f"-{flattered}\n+{row}\n", ran.stdout)
        self.assertIn("deploy/figures.py rewrites them", ran.stderr)
        self.assertEqual(figures(root=self.root).returncode, 0)
        self.assertEqual((self.root / "README.md").read_text(), before)
        self.assertEqual(figures("--check", root=self.root).returncode, 0)

    def test_a_loss_that_is_left_out_is_found(self):
        for page, row in (
            ("docs/figures.md", r"\| `cubes` \| Zen 5 \| 2 of 6 .*\n"),
            ("tests/bench/RESULTS.md", r"\| `cubes` \| 64\^3 .*\n"),
        ):
            row = re.search(row, (self.root / page).read_text())[0]
            self.change(page, row, "")
            ran = figures("--check", root=self.root)
            self.assertEqual(ran.returncode, 1)
            self.assertIn(f"+{row}", ran.stdout)

    def test_every_loss_is_counted_and_the_worst_are_named(self):
        """Each row of RESULTS.md counts in the row of its set in figures.md, which names the three worst."""
        every = (self.root / "tests/bench/RESULTS.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| (0\.\d+) \(", every, re.MULTILINE)
        self.assertGreater(len(rows), 30)
        counted = re.findall(
            r"^\| `(\w+)` \| ([^|]+) \| (\d+) of \d+ \| (.*) \|$",
            (self.root / "docs/figures.md").read_text(),
            re.MULTILINE,
        )
        self.assertEqual(sum(int(count) for _, _, count, _ in counted), len(rows))
        for name, machine, count, worst in counted:
            of = [(float(figure), shape) for own, shape, on, figure in rows if (own, on) == (name, machine)]
            self.assertEqual(len(of), int(count))
            for figure, of_name in sorted(of)[:3]:
                self.assertRegex(worst, rf"{re.escape(of_name)} \*\*({figure:.2f}|{figure:.3f})\*\*")

    def test_a_newer_result_makes_the_pages_differ(self):
        path = self.root / RESULTS / "2026-11-27-zen5.json"
        newer = json.loads(path.read_text())
        newer["date"] = "2026-11-28"
        for of in newer["runs"]:
            of["date"] = of["date"].replace("2026-11-27", "2026-11-28")
        (path.parent / "2026-11-28-zen5.json").write_text(summaries.summary_text(newer))
        ran = figures("--check", root=self.root)
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stdout, r"\+\| matmul, float32 \| Zen 5 .* 2026-11-28 \|")

    def test_regions_that_are_none_are_a_line_with_its_place(self):
        fill = {"t": "made"}
        self.assertEqual(
            pages.fill("p", "a\n<!-- figures: t -->\nold\n<!-- end -->\nb", fill),
            "a\n<!-- figures: t -->\nmade\n<!-- end -->\nb",
        )
        for text, message in (
            ("<!-- figures: t -->\nx", "p:1: .*without an end"),
            ("x\n<!-- end -->", "p:2: found <!-- end -->, expected"),
            ("<!-- figures: t -->\n<!-- figures: t -->", "p:2: .*region of line 1"),
            ("<!-- figures: u -->\n<!-- end -->", "p:1: found the table u, expected one of t"),
            ("x <!-- figures: t -->", "p:1: .*alone on its line"),
        ):
            with self.assertRaisesRegex(Problem, message):
                pages.fill("p", text, fill)

    def test_a_table_that_stands_in_no_page_is_a_line(self):
        self.change("docs/figures.md", "<!-- figures: losses -->", "<!-- figures: gpu -->")
        ran = figures("--check", root=self.root)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("found no page with losses", ran.stderr)

    def test_figures_stand_in_regions_only(self):
        readme = (SOURCE / "README.md").read_text()
        ours = {
            "docs/figures.md": (SOURCE / "docs/figures.md").read_text(),
            "README.md": readme[readme.index("## Results\n") : readme.index("## Where to go next")],
        }
        for page, text in ours.items():
            outside = re.sub(r"(?s)<!-- figures: .*?<!-- end -->", "", text)
            self.assertEqual(
                re.findall(r".*\b\d+\.\d\d.*|.*\d+ (?:%|ms|us|times|minutes)\b.*", outside), [], page
            )
            self.assertIn("<!-- figures: ", text)


class Damage(unittest.TestCase):
    good = summary(
        "2026-12-01",
        [
            run(
                "r",
                "2026-12-01",
                [shape("a", 1000, {"fast": 1600}, workload="v1 matmul")],
                groups=[
                    {"group": "some", "shapes": 1, "geometric_mean": 1.6, "worst": 1.6, "worst_shape": "a"}
                ],
            )
        ],
    )

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.scratch.name) / "2026-12-01-zen5.json"
        self.addCleanup(self.scratch.cleanup)

    def refused(self, text: str) -> str:
        """The line that ends figures.py on this file."""
        self.path.write_text(text)
        ran = figures("--show", self.path)
        self.assertEqual((ran.returncode, ran.stdout), (2, ""), text[:300])
        self.assertRegex(ran.stderr, r"\Afigures: 2026-12-01-zen5\.json.*\n\Z")
        return ran.stderr

    def test_the_good_one_is_shown(self):
        self.path.write_text(summaries.summary_text(self.good))
        ran = figures("--show", self.path)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("some: 1 shapes, geometric mean 1.600, worst 1.600 a", ran.stdout)

    def test_each_damage_is_a_line_that_says_what_was_expected(self):
        def change(*path_and_value):
            *path, last, value = path_and_value
            damaged = copy.deepcopy(self.good)
            item = damaged
            for key in path:
                item = item[key]
            item[last] = value
            return json.dumps(damaged)

        of_shape = ("runs", 0, "shapes", 0)
        for text, message in (
            (summaries.summary_text(self.good)[:-40], "found no JSON"),
            ("[" * 100000, "found no JSON"),
            ("[]", "expected an object"),
            (change("summary", 2), "summary: found 2, expected 1"),
            (change("date", "2026-12-02"), "expected what its name says"),
            (change("runs", 0, "date", "2026-12-02"), "a time on 2026-12-01"),
            (change("runs", self.good["runs"] * 2), "expected a name of its own"),
            (change("runs", 0, "busy", 1), "busy: found 1, expected true or false"),
            (
                change("runs", 0, "groups", 0, "geometric_mean", 1.7),
                "found 1.7, expected 1.600000, which its shapes give",
            ),
            (change("runs", 0, "groups", []), "groups: found \\[\\], expected \\['some'\\]"),
            (change("runs", 0, "shapes", self.good["runs"][0]["shapes"] * 2), "net/a twice"),
            (
                change(*of_shape, "ratio", [1.9, 1.9, 1.9]),
                "found 1.9, expected 1.600000, which its times give",
            ),
            (change(*of_shape, "ratio", [1.6, 1.6]), "expected three numbers"),
            (
                change(*of_shape, "ns", {"ours": -1, "fast": 1600}),
                "ours: found -1, expected a number above 0",
            ),
            (change(*of_shape, "ns", {"ours": float("nan"), "fast": 1600}), "ours: found nan"),
            (change(*of_shape, "ns", {"fast": 1600}), "ours: found nothing"),
            (change(*of_shape, "ns", {"ours": 1000, "fast": 1600, "faster": 1500}), "expected the fastest"),
            (change(*of_shape, "rounds", [1.6]), "found 1 ratios, expected 2"),
            (json.dumps({"bench": "bench_cpu"}), "found a raw result of 'bench_cpu', expected a summary"),
        ):
            self.assertRegex(self.refused(text), message)

    def test_no_random_damage_ends_it_otherwise(self):
        draw = random.Random(7)
        values = [None, True, -1, 0, 1e400, "", "x" * 200, [], {}, [None], {"a": []}, 10**400]

        def places(item, path=()):
            yield path
            for key in item if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ():
                yield from places(item[key], (*path, key))

        every = [path for path in places(self.good) if path]
        refused = 0
        for _ in range(2000):
            damaged = copy.deepcopy(self.good)
            *path, last = draw.choice(every)
            item = damaged
            for key in path:
                item = item[key]
            if draw.random() < 0.3 and isinstance(item, dict):
                del item[last]
            else:
                item[last] = draw.choice(values)
            try:
                summaries.check_summary(damaged, self.path)
                drawing.draw(Results([damaged]), {}, table(tables.Row("all", ("net",), limit=tables.PEAK)))
            except Problem as problem:
                self.assertNotIn("\n", str(problem))
                refused += 1
        self.assertGreater(refused, 1000)

    def test_a_raw_result_in_the_folder_is_a_line(self):
        root = copy_of_the_tree(pathlib.Path(self.scratch.name) / "tree")
        (root / RESULTS / "2026-12-01-zen5-raw.json").write_text('{"bench": "bench_cpu", "shapes": []}')
        ran = figures("--check", root=root)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("run deploy/figures.py --summarise on it, then remove it", ran.stderr)

    def test_results_stay_small(self):
        files = [path.read_text().split("\n") for path in (SOURCE / RESULTS).iterdir()]
        self.assertLess(sum(map(len, files)), 8000)
        self.assertLess(max(len(line) for lines in files for line in lines), 2000)


class Build(unittest.TestCase):
    parts = [f"part{i}" for i in range(30)]
    graph = (
        "rule r\n command = true $out\n"
        + "".join(f"build {n}: r\n" for n in parts)
        + (
            f"build installed: phony {' '.join(parts[:20])}\n"
            f"build all: phony installed {' '.join(parts[20:])}\n"
        )
    )

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name)
        (self.folder / "build.ninja").write_text(self.graph)
        self.addCleanup(self.scratch.cleanup)

    def test_steps_are_those_of_the_build_graph(self):
        self.assertEqual(build.count_steps(self.folder), {"installed": 20, "all": 30})
        with self.assertRaisesRegex(Problem, "found no build.ninja, expected a configured one"):
            build.count_steps(self.folder / "nothing")

    def test_steps_that_are_far_from_those_committed_are_found_and_recorded(self):
        root = copy_of_the_tree(self.folder / "tree")
        ran = figures("--check", self.folder, root=root)
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(
            ran.stderr,
            r"build\.json: installed: found \d+ steps, but the build graph has 20; deploy/figures\.py",
        )
        self.assertEqual(figures("--record-steps", self.folder, root=root).returncode, 0)
        kept = json.loads((root / "tests/bench/results/build.json").read_text())
        self.assertEqual(kept["steps"], {"installed": 20, "all": 30})
        self.assertEqual(figures("--check", self.folder, root=root).returncode, 0)

    def test_minutes_are_taken_from_what_ci_printed(self):
        root = copy_of_the_tree(self.folder / "tree")
        log = self.folder / "log"
        lines = [
            "ci: deploy/run.sh submit examples/conv2d.json --trials 128",
            "build: 261 steps took 390 s, 700 s of CPU and 50 s of the system",
            "[261/261] Linking CXX executable bin/tuner",
            "build: 840 steps took 780 s, 1400 s of CPU and 120 s of the system",
            "Total Test time (real) = 600.40 sec",
            "Total Test time (real) =   0.39 sec",
        ]
        log.write_text("\n".join(lines))
        ran = figures("--record-build", log, root=root)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        kept = json.loads((root / "tests/bench/results/build.json").read_text())
        self.assertEqual(kept["minutes"], {"installed": 6.5, "all": 13.0, "tests": 10.0})
        self.assertFalse(kept["busy"])
        text = (root / "README.md").read_text().replace("\n", " ")
        self.assertIn("Building the tests takes 13 more minutes, running them 10 minutes", text)
        log.write_text("\n".join(lines).replace("700 s of CPU", "500 s of CPU"))
        self.assertEqual(figures("--record-build", log, root=root).returncode, 0)
        self.assertIn("a busy machine", (root / "README.md").read_text().replace("\n", " "))
        for wrong in (lines[1:2], lines[:4], [*lines, lines[1]], []):
            log.write_text("\n".join(wrong))
            ran = figures("--record-build", log, root=root)
            self.assertEqual(ran.returncode, 2)
            self.assertRegex(
                ran.stderr, r"\Afigures: .*log: found \d builds and \d runs of tests, expected 2 and some"
            )

    def test_minutes_come_with_machine_day_and_whether_it_was_busy(self):
        said = {
            "steps": {"installed": 803, "all": 1582},
            "date": "2026-12-01",
            "machine": "a CPU",
            "busy": True,
            "minutes": {"installed": 12.4, "all": 8.6, "tests": 9.5},
        }
        self.assertEqual(
            drawing.draw_build(said).replace("\n", " "),
            "On two cores the first build takes 12 minutes. Building the tests takes 9 more minutes, running them "
            "10 minutes (2026-12-01, a CPU, a busy machine).",
        )
        del said["minutes"]
        self.assertEqual(
            drawing.draw_build(said).replace("\n", " "),
            "The first build runs about 800 compile and link steps. The tests need about 780 more steps.",
        )

    def measure(self, build_script: str) -> tuple:
        """figures.py --measure-build in a repository whose build and ctest are scripts."""
        if len(os.sched_getaffinity(0)) < 2 or not shutil.which("taskset") or not shutil.which("git"):
            self.skipTest("needs two cores, taskset and git")
        root = copy_of_the_tree(self.folder / "tree")
        scripts = {root / "deploy/build.sh": build_script, self.folder / "bin/ctest": "echo ctest $* >>$LOG"}
        for path, script in scripts.items():
            path.parent.mkdir()
            path.write_text(f"#!/bin/bash\n{script}\n")
            path.chmod(0o755)
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "all"]):
            subprocess.run(["git", "-C", root, *words], check=True)
        environment = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "GRAPH": self.graph,
            "TMPDIR": str(self.folder),
        }
        return root, figures("--measure-build", root=root, LOG=str(self.folder / "log"), **environment)

    def test_a_first_build_is_measured_in_a_clone_without_a_compiler_cache(self):
        before = (self.folder / "build.ninja").read_text()
        root, ran = self.measure(
            "echo build $* $CCACHE_DISABLE $(nproc) >>$LOG\n"
            'mkdir -p build/release && printf "$GRAPH" >build/release/build.ninja'
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(
            (self.folder / "log").read_text(),
            "build release installed 1 2\nbuild release all 1 2\nctest --preset release -LE long -j 2\n",
        )
        kept = json.loads((root / RESULTS / "build.json").read_text())
        self.assertEqual(
            (kept["steps"], sorted(kept["minutes"])),
            ({"installed": 20, "all": 30}, ["all", "installed", "tests"]),
        )
        self.assertIn(
            "On two cores the first build takes 0 minutes", (root / "README.md").read_text().replace("\n", " ")
        )
        self.assertFalse((root / "build").exists(), "it was built in a clone")
        self.assertEqual(before, self.graph)

    def test_a_build_that_fails_is_a_line_and_changes_nothing(self):
        root, ran = self.measure("echo broken; exit 3")
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1))
        log = re.search(
            r"deploy/build.sh release installed: ended with 3; its output is in (\S+)", ran.stderr
        )[1]
        self.assertEqual(pathlib.Path(log).read_text(), "broken\n")
        self.assertEqual(
            (root / RESULTS / "build.json").read_text(), (SOURCE / RESULTS / "build.json").read_text()
        )


class Use(unittest.TestCase):
    def test_wrong_use_is_one_line_and_2(self):
        for words, message in (
            (["--nonsense"], "unrecognized arguments: --nonsense"),
            (["--check", "a", "b"], "unrecognized"),
            (["--busy"], "found --busy, expected --summarise RAW.json with it"),
            (["--summarise", "x.json"], "--machine: found ''"),
            (["--summarise", "x.json", "--machine", "../x"], "--machine: found"),
            (["--summarise", "/nothing.json", "--machine", "zen5"], "cannot be read"),
            (["--show", "nothing.json"], "cannot be read"),
            (["--check", "/nothing"], "expected a configured one"),
        ):
            ran = figures(*words)
            self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1), ran.stderr)
            self.assertIn(message, ran.stderr)


if __name__ == "__main__":
    unit_tests.main()
