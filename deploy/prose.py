#!/usr/bin/python3
"""prose.py [FILE...]: checks README.md and docs/ (or the files named) for sentences that nobody reads once: longer than 30 words.

A code span counts as one word; so does a link's text of one word. Sentences in tables and lists count, code blocks do not. Lines are at
most 140 columns, rows of tables 160. Prints FILE:LINE, the number of words and the sentence. Exit code 1: something is too long;
2: it cannot run. Needs python3-markdown-it (deploy/install.sh --lint)."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MOST_WORDS = 30
MOST_COLUMNS = {"line": 140, "row": 160}
# A full stop that ends no sentence: behind these.
ABBREVIATIONS = ("e.g", "i.e", "etc", "vs", "cf", "approx", "Fig", "No")
END = re.compile(r"[.!?]+[)\"']*(?=\s|$)")


def sentences(text: str) -> list:
    found, begin = [], 0
    for end in END.finditer(text):
        if text[begin:end.start()].endswith(ABBREVIATIONS) and end.group().startswith("."):
            continue
        found.append(text[begin:end.end()].strip())
        begin = end.end()
    return [one for one in [*found, text[begin:].strip()] if one]


def words(sentence: str) -> int:
    return sum(any(c.isalnum() for c in word) for word in sentence.split())


def plain(token) -> str:
    """The text of a paragraph, heading or cell, without marks."""
    parts = []
    for child in token.children:
        if child.type == "code_inline":
            parts.append("`" + "_".join(child.content.split()) + "`")
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif child.type in ("text", "image"):
            parts.append(child.content)
    return "".join(parts)


def problems_of(name: str, text: str, parser) -> list:
    found = []
    line = 1
    for token in parser.parse(text):
        if token.map:  # a table's cells have none: their row's line stands
            line = token.map[0] + 1
        if token.type != "inline":
            continue
        for sentence in sentences(plain(token)):
            if words(sentence) > MOST_WORDS:
                found.append(f"{name}:{line}: {words(sentence)} words, at most {MOST_WORDS}: {sentence}")
    fenced = False
    for number, content in enumerate(text.splitlines(), 1):
        if content.lstrip().startswith("```"):
            fenced = not fenced
        kind = "row" if content.startswith("|") else "line"
        if len(content) > MOST_COLUMNS[kind] and not fenced:
            found.append(f"{name}:{number}: {len(content)} columns, at most {MOST_COLUMNS[kind]} in a {kind}")
    return found


def main() -> int:
    if any(name.startswith("-") for name in sys.argv[1:]):
        print(__doc__, file=sys.stdout if sys.argv[1:] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    try:
        from markdown_it import MarkdownIt  # pylint: disable=import-outside-toplevel
    except ImportError:
        print("prose: python3-markdown-it is not installed: deploy/install.sh --lint", file=sys.stderr)
        return 2
    files = [pathlib.Path(name) for name in sys.argv[1:]] or [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    parser = MarkdownIt("commonmark").enable("table")
    count = 0
    try:
        for file in files:
            for problem in problems_of(str(file), file.read_text(encoding="utf-8"), parser):
                print(problem)
                count += 1
    except (OSError, UnicodeDecodeError) as problem:
        print(f"prose: {problem}", file=sys.stderr)
        return 2
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
