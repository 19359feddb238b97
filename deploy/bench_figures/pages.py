"""Pages with regions: `<!-- figures: NAME -->`, lines that are made, `<!-- end -->`."""

import difflib
import re

from .problems import Problem

BEGIN = re.compile(r"<!-- figures: (\S+) -->")
END = "<!-- end -->"


def fill(page: str, text: str, made: dict) -> str:
    """The text of a page with each region filled. `made` is the text of each name; `page` is for messages."""
    out, name, opened = [], None, 0
    for number, line in enumerate(text.split("\n"), 1):
        begins, ends = BEGIN.fullmatch(line), line == END
        if begins:
            if name is not None:
                raise Problem(
                    f"{page}:{number}: found {line}, expected {END} of the region of line {opened} before it"
                )
            name, opened = begins[1], number
            if name not in made:
                raise Problem(
                    f"{page}:{number}: found the table {name}, expected one of {', '.join(sorted(made))}"
                )
            out += [line, made[name]]
        elif ends:
            if name is None:
                raise Problem(f"{page}:{number}: found {END}, expected <!-- figures: NAME --> before it")
            name = None
        elif "<!-- figures:" in line:
            raise Problem(
                f"{page}:{number}: found {line[:60]}, expected <!-- figures: NAME --> alone on its line"
            )
        if name is None:
            out.append(line)
    if name is not None:
        raise Problem(f"{page}:{opened}: found the region {name} without an end, expected {END} below it")
    return "\n".join(out)


def names_in(text: str) -> list:
    return [m[1] for line in text.split("\n") if (m := BEGIN.fullmatch(line))]


def difference(page: str, old: str, new: str) -> str:
    return "".join(
        difflib.unified_diff(old.splitlines(True), new.splitlines(True), page, f"{page}, from the summaries")
    )
