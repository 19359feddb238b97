"""How many digits of a raw result are kept."""


def ns(value: float):
    """Seven digits of a time."""
    kept = round(value, max(0, 7 - len(str(int(value)))))
    return int(kept) if kept == int(kept) else kept


def six(value: float) -> float:
    return round(value, 6)


def digits4(value: float) -> float:
    return float(f"{value:.4g}")


def interval(ratio: dict, middle: str) -> list:
    """[figure, low, high]"""
    return [six(ratio[key]) for key in (middle, "low", "high")]


def round_ratios(peer: list, ours: list) -> list:
    return [round(p / o, 3) for p, o in zip(peer, ours)]


def numbers(item: dict) -> dict:
    return {key: six(value) if isinstance(value, float) else value for key, value in item.items()}
