"""links.py SITE: checks every link within a built site: the file is there, and so is the anchor. Exit code 1: one is not."""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """Collects links and anchors."""

    def __init__(self, path: pathlib.Path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


def main() -> int:
    if len(sys.argv) != 2:
        print("site: expected the folder of a site", file=sys.stderr)
        return 2
    site = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    wrong = count = 0
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # the theme's, with links from the server's root
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.is_file():
                print(f"site: {path.relative_to(site)}: nothing is at {link}", file=sys.stderr)
                wrong += 1
            elif anchor and target in pages and anchor not in pages[target].anchors:
                print(f"site: {path.relative_to(site)}: {link} has no such anchor", file=sys.stderr)
                wrong += 1
    print(f"site: {len(pages)} pages, {count} links, {wrong} wrong")
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
