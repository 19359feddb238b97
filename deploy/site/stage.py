"""stage.py ROOT STAGE: copies the pages of the tree to STAGE for MkDocs, each where it is in the tree, so that links hold.

Pages are all Markdown files that git has. Other files that they link to are copied as they are, in the form of text that a browser
shows; links to folders go to the folder's README. A line `<!-- picture: NAME, TEXT -->` becomes the picture STAGE/pictures/NAME.png if
it is there. Exit code 1: a link leads nowhere."""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]*)(#[^)\s]*)?\)")
PICTURE = re.compile(r"^<!-- picture: ([a-z_]+), (.*?) -->$", re.MULTILINE)
FENCE = re.compile(r"^```(\w+)(?: \S+)?$", re.MULTILINE)  # "```json job.json" names a file for a test
AS_IT_IS = (".md", ".png", ".html", ".json", ".txt")


def main() -> int:
    if len(sys.argv) != 3:
        print("site: expected the tree and a folder for its pages", file=sys.stderr)
        return 2
    root, stage = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    said = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"], capture_output=True, check=True)
    tracked = {name for name in said.stdout.decode().split("\0") if name and (root / name).is_file()}
    problems, linked = [], {}

    def shown(page: str, link: str) -> str | None:
        """The link as the site has it, or None where it leads nowhere."""
        target = (root / page).parent / link
        try:
            name = str(target.resolve().relative_to(root))
        except ValueError:
            return None
        if target.is_dir():
            return f"{link.rstrip('/')}/README.md" if f"{name}/README.md" in tracked or name == "." else None
        if name not in tracked:
            return None
        if name.endswith(".md"):
            return link
        ending = "" if name.endswith(AS_IT_IS) else ".txt"
        linked[name] = name + ending
        return link + ending

    for page in sorted(name for name in tracked if name.endswith(".md")):
        def turned(match, page=page):
            head, link, anchor = match.group(1), match.group(2), match.group(3) or ""
            if not link or "://" in link or link.startswith("mailto:"):
                return match.group(0)
            new = shown(page, link)
            if new is None:
                problems.append(f"{page}: a link leads nowhere: {link}")
                return match.group(0)
            return f"{head}{new}{anchor})"

        text = without_code(LINK, turned, (root / page).read_text(encoding="utf-8"))
        text = FENCE.sub(r"\n```\1", text)
        up = "../" * page.count("/")
        text = PICTURE.sub(lambda m: f"![{m.group(2)}]({up}pictures/{m.group(1)}.png)" if (stage / "pictures" / f"{m.group(1)}.png").is_file() else "", text)
        (stage / page).parent.mkdir(parents=True, exist_ok=True)
        (stage / page).write_text(text, encoding="utf-8")
    for name, copy in linked.items():
        (stage / copy).parent.mkdir(parents=True, exist_ok=True)
        (stage / copy).write_bytes((root / name).read_bytes())
    for problem in problems:
        print(f"site: {problem}", file=sys.stderr)
    return 1 if problems else 0


def without_code(pattern: re.Pattern, change, text: str) -> str:
    """Applies the change outside of code blocks."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if i % 2 else pattern.sub(change, part) for i, part in enumerate(parts))


if __name__ == "__main__":
    sys.exit(main())
