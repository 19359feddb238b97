"""What ends deploy/figures.py: the caller's mistake, or a file that is not what it should be."""


class Problem(Exception):
    """One line: where, what was found, what was expected, what to do next. Exit code 2."""


def shortened(value) -> str:
    """A value from a file as it may be printed: escaped, of bounded length."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def is_number(value) -> bool:
    """A finite number; True and False are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18


def is_text(value) -> bool:
    """One that can be printed as it is: one line, no control characters, of bounded length."""
    return isinstance(value, str) and value.isprintable() and len(value) <= 2000


KINDS = {
    "a text": is_text,
    "true or false": lambda v: isinstance(v, bool),
    "a number": is_number,
    "a number above 0": lambda v: is_number(v) and v > 0,
    "a whole number from 1": lambda v: is_number(v) and isinstance(v, int) and v >= 1,
    "a list of texts": lambda v: isinstance(v, list) and all(is_text(t) and t.strip() for t in v),
    "a list of numbers above 0": lambda v: isinstance(v, list) and all(is_number(n) and n > 0 for n in v),
    "a list of objects": lambda v: isinstance(v, list) and all(isinstance(o, dict) for o in v),
    "an object": lambda v: isinstance(v, dict),
}


def check(value, kind: str, where: str):
    """Returns the value if it is of the kind, a key of KINDS."""
    if not KINDS[kind](value):
        raise Problem(f"{where}: found {shortened(value)}, expected {kind}")
    return value


def check_fields(item: dict, where: str, required: dict, optional: dict = {}) -> None:
    """Both are kinds by key. Other keys are free."""
    for key, kind in required.items():
        if key not in item:
            raise Problem(f"{where}: {key}: found nothing, expected {kind}")
        check(item[key], kind, f"{where}: {key}")
    for key, kind in optional.items():
        if key in item:
            check(item[key], kind, f"{where}: {key}")
