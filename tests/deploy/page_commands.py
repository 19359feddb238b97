"""Commands of a page: what its shell blocks say, in their order, each as one text."""

import re


def commands(text, heading=""):
    """Commands of the `sh` blocks below the heading (all of the page without one). A line that ends with \\ goes on in the next."""
    found, inside, here = [], False, not heading
    for line in text.splitlines():
        if not inside and re.match(r"#+ ", line):
            here = not heading or line.lstrip("#").strip() == heading
        elif line.startswith("```"):
            inside = line == "```sh"
        elif inside and here and line.strip():
            if found and found[-1].endswith("\\"):
                found[-1] += "\n" + line
            else:
                found.append(line)
    return found


class Script:
    """Commands of a page, which are done in their order and each once. What the test does about one is told by how it begins.

    The page may change as long as the test knows what is special about its commands: one that nobody takes is run as it is, and a
    rule that no command of the page fits is an error.
    """

    def __init__(self, page, words, rules=None):
        self.page, self.words, self.rules = page, words, dict(rules or {})

    def play(self, run):
        """`run(command)` does what is not special."""
        if not self.words:
            raise AssertionError(f"{self.page}: there are no commands")
        unused = set(self.rules)
        for command in self.words:
            fits = [begin for begin in self.rules if command.startswith(begin)]
            if not fits:
                run(command)
                continue
            begin = max(fits, key=len)
            unused.discard(begin)
            self.rules[begin](command)
        if unused:
            raise AssertionError(f"{self.page}: no command begins with {sorted(unused)}; the page has {self.words}")
