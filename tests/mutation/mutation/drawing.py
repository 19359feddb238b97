"""Small changes drawn by a seed. libclang finds where they fit, so that most of them compile."""

import dataclasses
import hashlib
import json
import pathlib
import random
import re

from . import Problem, folders

FLIPPED = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
EXTREMES = {"min": "max", "max": "min"}
LOCKS = re.compile(r"\b(?:std::)?(?:lock_guard|scoped_lock|unique_lock|shared_lock)\b")
INTEGER = re.compile(r"(?:0|[1-9][0-9']*)(?:[uUlLzZ]*)$")
NUMBER = re.compile(r"[0-9][0-9']*\.?[0-9']*(?:e[+-]?[0-9]+)?$")
TALK = re.compile(r"\b(?:spdlog|static_assert)\b")  # what a log says is no promise
TRIES = 60  # of a file and a place in it, per fault


def load_clang():
    try:
        import clang.cindex as cindex  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise Problem("drawing faults needs python3-clang-22 (deploy/install.sh --lint)") from error
    if not cindex.Config.loaded:
        cindex.Config.set_library_file("/usr/lib/llvm-22/lib/libclang-22.so.1")
    return cindex


def compiled_files(build: pathlib.Path, tree: pathlib.Path) -> dict:
    """Product file that this build compiles (sources and headers) -> the arguments of a source that reads it."""
    commands = json.loads((build / "compile_commands.json").read_text())
    arguments = {}
    for entry in commands:
        file = pathlib.Path(entry["file"])
        if file.is_relative_to(tree):
            words = entry["command"].split()
            arguments[str(file.relative_to(tree))] = [w for w in words if w.startswith(("-I", "-D", "-std="))] + system_includes(words)
    found = {}
    for name in sorted(arguments):
        if name.split("/")[0] in folders.PRODUCT:
            found[name] = arguments[name]
    for header in sorted(str(p.relative_to(tree)) for top in folders.PRODUCT for p in (tree / top).rglob("*.h")):
        beside = [found[name] for name in found if pathlib.PurePath(name).parent == pathlib.PurePath(header).parent]
        if beside:
            found[header] = beside[0]
    return found


def system_includes(words: list) -> list:
    return [part for i, word in enumerate(words[:-1]) if word == "-isystem" for part in (word, words[i + 1])]


class File:
    """One parsed file, and the places in it where a change fits."""

    def __init__(self, cindex, tree: pathlib.Path, name: str, arguments: list):
        self.cindex, self.name = cindex, name
        self.path = str(tree / name)
        self.bytes = (tree / name).read_bytes()
        options = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
        self.unit = cindex.Index.create().parse(self.path, ["-x", "c++" if not name.endswith(".c") else "c", *arguments], options=options)
        self.macros = {(c.location.line, c.location.column) for c in self.unit.cursor.get_children()
                       if c.kind == cindex.CursorKind.MACRO_INSTANTIATION and c.location.file and c.location.file.name == self.path}
        self.places = []
        for child in self.unit.cursor.get_children():
            if child.location.file and child.location.file.name == self.path:
                self.walk(child, None)
        self.places = sorted(set(self.places))

    def source(self, cursor) -> str:
        return self.bytes[cursor.extent.start.offset:cursor.extent.end.offset].decode(errors="replace")

    def add(self, kind: str, begin: int, end: int, becomes: str) -> None:
        text = self.bytes[begin:end].decode(errors="replace")
        if text and text != becomes:
            self.places.append((kind, begin, text, becomes))

    def within(self, cursor) -> bool:
        start, end = cursor.extent.start, cursor.extent.end
        return bool(start.file and end.file and start.file.name == self.path == end.file.name and end.offset > start.offset)

    def walk(self, cursor, parent) -> None:
        kinds = self.cindex.CursorKind
        if cursor.kind == kinds.MACRO_INSTANTIATION or not self.within(cursor):
            if cursor.kind not in (kinds.NAMESPACE, kinds.UNEXPOSED_DECL, kinds.LINKAGE_SPEC):
                return
        if cursor.kind == kinds.STATIC_ASSERT:
            return
        children = list(cursor.get_children())
        if cursor.kind == kinds.BINARY_OPERATOR and len(children) == 2:
            self.operator(children)
        elif cursor.kind in (kinds.INTEGER_LITERAL, kinds.FLOATING_LITERAL):
            self.literal(cursor)
        elif cursor.kind == kinds.CALL_EXPR:
            self.call(cursor)
        elif cursor.kind == kinds.IF_STMT:
            self.condition(cursor, children)
        elif cursor.kind == kinds.COMPOUND_STMT:
            for child in children:
                self.statement(child)
        for child in children:
            self.walk(child, cursor)

    def between(self, left, right) -> tuple[int, int]:
        return left.extent.end.offset, right.extent.start.offset

    def operator(self, children) -> None:
        begin, end = self.between(*children)
        written = self.bytes[begin:end].decode(errors="replace")
        sign = written.strip()
        at = begin + written.find(sign) if sign else begin
        for other in FLIPPED.get(sign, ()):
            self.add("comparison flipped", at, at + len(sign), other)
        if sign in ("&&", "||"):
            left, right = children
            self.add("condition dropped", left.extent.start.offset, right.extent.start.offset, "")
            self.add("condition dropped", left.extent.end.offset, right.extent.end.offset, "")
        if sign in ("+", "-") and self.source(children[1]) == "1":
            self.add("off by one", begin, children[1].extent.end.offset, "")

    def literal(self, cursor) -> None:
        text = self.source(cursor)
        begin, end = cursor.extent.start.offset, cursor.extent.end.offset
        if INTEGER.match(text):
            digits = text.rstrip("uUlLzZ")
            suffix = text[len(digits):]
            value = int(digits.replace("'", ""))
            self.add("off by one", begin, end, f"{value + 1}{suffix}")
            if value > 1:
                self.add("constant scaled", begin, end, f"{value * 10}{suffix}")
        elif NUMBER.match(text) and float(text.replace("'", "")) != 0:
            self.add("constant scaled", begin, end, f"({text} * 10)")

    def call(self, cursor) -> None:
        named = not cursor.spelling.startswith("operator")  # a == b reads as a call, too
        arguments = [a for a in cursor.get_arguments() if named and a is not None and self.within(a)]
        for left, right in zip(arguments, arguments[1:]):
            if left.extent.end.offset < right.extent.start.offset and same_type(left, right) and self.source(left) != self.source(right):
                between = self.bytes[left.extent.end.offset:right.extent.start.offset].decode(errors="replace")
                self.add("arguments swapped", left.extent.start.offset, right.extent.end.offset, self.source(right) + between + self.source(left))
        if cursor.spelling in EXTREMES:
            head = self.bytes[cursor.extent.start.offset:cursor.extent.end.offset].split(b"(")[0].decode(errors="replace")
            at = head.rfind(cursor.spelling)
            if at >= 0:
                begin = cursor.extent.start.offset + at
                self.add("min and max exchanged", begin, begin + 3, EXTREMES[cursor.spelling])

    def condition(self, cursor, children) -> None:
        """An if that only leaves (return, throw, continue, break) is a check."""
        text = self.source(cursor)
        if re.search(r"\belse\b", text) or not re.match(r"if\s*\([^;]*\)\s*\{?\s*(?:return|throw|continue|break|co_return)\b", text):
            return
        end = cursor.extent.end.offset
        if not text.endswith("}"):
            end = self.bytes.find(b";", end - 1) + 1
        if end > cursor.extent.start.offset:
            self.add("check removed", cursor.extent.start.offset, end, "")

    def statement(self, child) -> None:
        kinds = self.cindex.CursorKind
        text = self.source(child)
        begin, end = child.extent.start.offset, child.extent.end.offset
        if child.kind == kinds.DECL_STMT and LOCKS.search(text):
            self.add("lock removed", begin, end, "")
        elif child.kind in (kinds.CALL_EXPR, kinds.COMPOUND_ASSIGNMENT_OPERATOR, kinds.UNARY_OPERATOR) or (
                child.kind == kinds.BINARY_OPERATOR and re.search(r"[^=!<>]=[^=]", text)) or (
                child.kind == kinds.UNEXPOSED_EXPR and "(" in text):
            if not TALK.search(text):
                self.add("statement dropped", begin, end, "")


def same_type(left, right) -> bool:
    first, second = (a.type.get_canonical().get_unqualified() if hasattr(a.type, "get_unqualified") else a.type.get_canonical()
                     for a in (left, right))
    return first.spelling.replace("const ", "") == second.spelling.replace("const ", "") and first.spelling != ""


def draw(tree: pathlib.Path, build: pathlib.Path, lists: dict, seed: int, count: int, say, wanted=lambda name: True) -> list:
    """The first `count` faults of the seed, over all compiled product files that are `wanted`, each file as likely as its number of
    lines. They are remembered beside the build for as long as the product stays as it is."""
    product = hashlib.sha256()
    for path in sorted(p for top in folders.PRODUCT for p in (tree / top).rglob("*") if p.suffix in folders.CODE):
        product.update(str(path).encode() + path.read_bytes())
    files = {name: words for name, words in compiled_files(build, tree).items() if str(pathlib.PurePath(name).parent) in lists and wanted(name)}
    product.update("".join(f"{name}\n" for name in sorted(files)).encode())
    memory = build.parent / f"drawn-{seed}.json"
    try:
        known = json.loads(memory.read_text())
        if known["product"] == product.hexdigest() and len(known["faults"]) >= count:
            return [folders.Fault(**fault) for fault in known["faults"][:count]]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    faults = draw_anew(tree, files, seed, count, say)
    memory.write_text(json.dumps({"product": product.hexdigest(), "faults": [dataclasses.asdict(fault) for fault in faults]}))
    return faults


def draw_anew(tree: pathlib.Path, files: dict, seed: int, count: int, say) -> list:
    cindex = load_clang()
    names = sorted(files)
    if not names:
        return []
    weights = [len((tree / name).read_bytes().splitlines()) for name in names]
    chance = random.Random(seed)
    parsed, drawn, seen = {}, [], set()
    for _ in range(count * TRIES):
        if len(drawn) == count:
            break
        name = chance.choices(names, weights)[0]
        if name not in parsed:
            parsed[name] = File(cindex, tree, name, files[name]).places
            if len(parsed) % 20 == 0:
                say(f"{len(parsed)} files read, {len(drawn)} faults drawn")
        if not parsed[name]:
            continue
        kind = chance.choice(sorted({place[0] for place in parsed[name]}))
        kind, offset, text, becomes = chance.choice([place for place in parsed[name] if place[0] == kind])
        if (name, offset, becomes) not in seen:
            seen.add((name, offset, becomes))
            drawn.append(folders.Fault(str(pathlib.PurePath(name).parent), name, text, becomes, kind, source=f"seed {seed}", kind=kind, offset=offset))
    return drawn
