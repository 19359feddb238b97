"""Tests of deploy/prose.py and deploy/site: what they find on made-up pages, and that every link of our own pages leads somewhere."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import unit_tests  # noqa: E402 pylint: disable=wrong-import-position


def run(script: str, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-B", str(ROOT / "deploy" / script), *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, check=False)


class Folder(unittest.TestCase):
    """A folder that is gone after the test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class Prose(Folder):
    def setUp(self):
        super().setUp()
        try:
            import markdown_it  # noqa: F401 pylint: disable=import-outside-toplevel,unused-import
        except ImportError:
            self.skipTest("python3-markdown-it is not installed (deploy/install.sh --lint)")

    def found(self, text: str) -> list:
        said = run("prose.py", self.write("page.md", text))
        self.assertEqual(said.returncode, 1 if said.stdout else 0, said.stderr)
        return [line.split("page.md:", 1)[1] for line in said.stdout.splitlines()]

    def test_thirty_words_are_read_and_thirty_one_are_not(self):
        self.assertEqual(self.found(" ".join(["wo"] * 30) + ".\n"), [])
        self.assertIn("1: 31 words, at most 30", self.found(" ".join(["wo"] * 31) + ".\n")[0])

    def test_lists_tables_and_several_lines_count(self):
        long = " ".join(["wo"] * 31)
        broken = long.replace("wo word word", "word\nword word", 1)
        for text, line in ((f"- a\n- {long}\n", 2), (f"x.\n\n{broken}\n", 3), (f"> {long}\n", 1)):
            self.assertEqual([f.split(":")[0] for f in self.found(text)], [str(line)], text)
        self.assertIn("31 words", self.found(f"| a |\n|---|\n| {' '.join(['wo'] * 31)} |\n")[0])

    def test_code_is_no_sentence_and_a_span_is_one_word(self):
        self.assertEqual(self.found("```\n" + "wo " * 40 + "\n```\n"), [])
        self.assertEqual(self.found("`" + "a b " * 9 + "` " + "wo " * 29 + "\n"), [])
        self.assertEqual(len(self.found("`a b` " + "wo " * 30 + "\n")), 1)

    def test_full_stops_that_end_no_sentence(self):
        half = "wo " * 16
        self.assertEqual(len(self.found(f"{half}e.g. {half}\n")), 1)
        self.assertEqual(len(self.found(f"{half}3.14 {half}\n")), 1)
        self.assertEqual(self.found(f"{half.strip()}. {half}\n"), [])

    def test_lines_that_are_too_wide(self):
        self.assertEqual(self.found("x" * 140 + "\n"), [])
        self.assertIn("141 columns", self.found("x" * 141 + "\n")[0])
        self.assertEqual(self.found("| " + "x" * 157 + "|\n|---|\n"), [])
        self.assertIn("161 columns", self.found("| " + "x" * 158 + "|\n|---|\n")[0])

    def test_a_page_that_is_not_there(self):
        self.assertEqual(run("prose.py", self.folder / "none.md").returncode, 2)


class Site(Folder):
    def setUp(self):
        super().setUp()
        if not shutil.which("git") or not (ROOT / ".git").exists():
            self.skipTest("needs git and a clone")

    def test_our_own_links_lead_somewhere(self):
        said = run("site/stage.py", ROOT, self.folder / "stage")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertTrue((self.folder / "stage/docs/farm.md").is_file())

    def test_links_of_a_made_up_tree(self):
        subprocess.run(["git", "init", "-q", str(self.folder / "tree")], check=True)
        self.write("tree/README.md", "[a](docs/a.md#part) [f](db) [c](db/x.h) [out](https://example.org/x) [self](#part)\n"
                   "<!-- picture: report, A report -->\n<!-- picture: none, Not there -->\n```\n[no link](nowhere)\n```\n")
        self.write("tree/docs/a.md", "# Part\n[up](../README.md)\n")
        self.write("tree/db/README.md", "```json job.json\n{}\n```\n")
        self.write("tree/db/x.h", "int x;\n")
        self.write("stage/pictures/report.png", "")
        said = run("site/stage.py", self.folder / "tree", self.folder / "stage")
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertEqual((self.folder / "stage/README.md").read_text(),
                         "[a](docs/a.md#part) [f](db/README.md) [c](db/x.h.txt) [out](https://example.org/x) [self](#part)\n"
                         "![A report](pictures/report.png)\n\n```\n[no link](nowhere)\n```\n")
        self.assertEqual((self.folder / "stage/db/README.md").read_text(), "\n```json\n{}\n```\n")
        self.assertEqual((self.folder / "stage/db/x.h.txt").read_text(), "int x;\n")
        self.write("tree/docs/a.md", "[a](b.md) [b](../../outside.md) [c](../docs)\n")
        said = run("site/stage.py", self.folder / "tree", self.folder / "stage")
        self.assertEqual(said.returncode, 1)
        self.assertEqual(said.stderr.splitlines(), [f"site: docs/a.md: a link leads nowhere: {link}"
                                                    for link in ("b.md", "../../outside.md", "../docs")])

    def test_links_of_a_built_site(self):
        self.write("site/index.html", "<a href='a/b.html#there'>x</a><a href='https://example.org'>x</a><img src='p.png'><p id='here'><a href='#here'>")
        self.write("site/a/b.html", "<h2 id='there'>x</h2><a href='../index.html'>x</a>")
        self.write("site/p.png", "")
        self.assertEqual(run("site/links.py", self.folder / "site").returncode, 0)
        self.write("site/a/b.html", "<h2 id='other'>x</h2><a href='none.html'>x</a>")
        said = run("site/links.py", self.folder / "site")
        self.assertEqual(said.returncode, 1)
        self.assertEqual(sorted(said.stderr.splitlines()), ["site: a/b.html: nothing is at none.html",
                                                            "site: index.html: a/b.html#there has no such anchor"])
        self.write("empty/x.txt", "")
        self.assertEqual(run("site/links.py", self.folder / "empty").returncode, 1)


if __name__ == "__main__":
    unit_tests.main()
