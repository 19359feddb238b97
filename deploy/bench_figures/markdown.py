"""Text as a page shows it: figures, ranges, tables, lists."""

import textwrap

WIDTH = 110


def speed(value: float) -> str:
    """Two decimals; three where two would hide that we are slower. Losses are bold."""
    text = f"{value:.2f}"
    if value < 1 and float(text) >= 1:
        text = f"{value:.3f}"
    return f"**{text}**" if value < 1 else text


def span(values: list, digits: int = 0) -> str:
    """The least and the greatest, or the one that both are."""
    low, high = (f"{v:.{digits}f}" for v in (min(values), max(values)))
    return low if low == high else f"{low}-{high}"


def three(value: float) -> str:
    """Three digits."""
    return f"{value:#.3g}".rstrip(".")


def table(head: list, rows: list) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines)


def paragraph(text: str, first: str = "", rest: str = "") -> str:
    """Lines of at most WIDTH columns, the first and the rest indented."""
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


def bullets(items: list) -> str:
    """Each item is a text and the texts below it."""
    lines = []
    for text, below in items:
        lines.append(paragraph(text, "- ", "  "))
        lines += [paragraph(of, "  - ", "    ") for of in below]
    return "\n".join(lines)
