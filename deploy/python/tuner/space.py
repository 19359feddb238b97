"""The strategies of tuner, for an objective that you measure yourself.

    space = tuner.Space({"TILE": [8, 16, 32], "ORDER": ["rows", "columns"]}, constraints=["TILE >= 16 or ORDER == 'rows'"])
    search = space.search(seed=1)
    for _ in range(4):
        for config in search.ask(16):
            search.tell(config, measure(config))
    print(search.best)
"""

import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _search, errors
from .values import Path

Config = Dict[str, Any]
Values = Union[Sequence[int], Sequence[str], range, Mapping[str, int]]


def strategies() -> List[str]:
    """The names that Space.search() takes."""
    return list(_search.strategies())


class Space:
    """Knobs with their values, and constraints between them, as in a job file (docs/own_kernels.md)."""

    def __init__(self, knobs: Mapping[str, Values], *, constraints: Iterable[str] = (), default: Optional[Mapping[str, Any]] = None,
                 sizes: Optional[Mapping[str, int]] = None):
        """`default`: the config to try first; else the first value of each list. `sizes`: numbers that constraints use."""
        listed = {str(name): _values(str(name), values) for name, values in knobs.items()}
        try:
            self._space = _search.Space(listed, list(constraints), dict(default or {}), dict(sizes or {}))
        except TypeError:
            raise errors.InvalidRequest("Space: expected knobs with integers or words, constraints as texts, sizes as integers") from None

    def __len__(self) -> int:
        return self._space.size()

    @property
    def default(self) -> Config:
        return self._space.default()

    def configs(self, most: int = 1_000_000) -> List[Config]:
        """All valid configs, in the order of the grid."""
        return self._space.configs(most)

    def __contains__(self, config: Any) -> bool:
        try:
            self._space.check(dict(config))
        except (errors.InvalidRequest, TypeError, ValueError):
            return False
        return True

    def search(self, strategy: str = "", *, seed: int = 0) -> "Search":
        return Search(self._space, strategy, seed)


class Search:
    """A search that proposes what `tuner submit` would, given the same space, seed, calls and results."""

    def __init__(self, space: Any, strategy: str = "", seed: int = 0):
        if not 0 <= seed < 2**64:
            raise errors.InvalidRequest(f"seed: expected an integer from 0 to {2**64 - 1}, found {seed}")
        self._search = _search.Search(space, strategy or _search.default_strategy(), seed)
        #: The best config so far with its value; None before the first that worked.
        self.best: Optional[Tuple[Config, float]] = None
        #: All that was told, in order.
        self.told: List[Tuple[Config, Optional[float]]] = []

    def ask(self, count: int = 1) -> List[Config]:
        """Up to `count` configs that were never proposed; fewer if the space is used up. The first one is the default."""
        if not 1 <= count <= 1_000_000:
            raise errors.InvalidRequest(f"ask: expected 1 to 1000000 configs, found {count}")
        return self._search.ask(count)

    def tell(self, config: Config, value: Optional[float], *, cut: bool = False) -> None:
        """The measured value: above 0, and lower is better. None: the config failed. `cut`: it takes at least so long."""
        self.tell_all([(config, value, cut)])

    def tell_all(self, results: Iterable[Tuple[Any, ...]]) -> None:
        """Several results at once, as (config, value) or (config, value, cut)."""
        batch = [(dict(result[0]), None if result[1] is None else float(result[1]), bool(result[2]) if len(result) > 2 else False)
                 for result in results]
        self._search.tell(batch)
        for config, value, cut in batch:
            self.told.append((config, value))
            if value is not None and not cut and (self.best is None or value < self.best[1]):
                self.best = (config, value)

    def minimize(self, measure: Callable[[Config], Optional[float]], trials: int, *, batch: int = 1) -> Tuple[Config, float]:
        """Asks, measures and tells until `trials` configs were tried; returns the best."""
        left = trials
        while left > 0:
            configs = self.ask(min(batch, left))
            if not configs:
                break
            self.tell_all([(config, measure(config)) for config in configs])
            left -= len(configs)
        if self.best is None:
            raise errors.NotFound(f"minimize: none of {len(self.told)} configs worked")
        return self.best

    @property
    def status(self) -> str:
        """How well the model ranks, for people; empty without a model."""
        return self._search.status()

    @property
    def model_digest(self) -> str:
        return self._search.model_digest()


class RecordedSpace:
    """A space in which every time is known, from a file of `tuner records export --space`: searches are played on it."""

    def __init__(self, path: Path):
        self._recorded = _search.read_recorded_space(os.fspath(path))

    @property
    def name(self) -> str:
        return self._recorded.name

    @property
    def best_ns(self) -> float:
        return self._recorded.best_ns

    @property
    def median_ns(self) -> float:
        return self._recorded.median_ns

    def __len__(self) -> int:
        return self._recorded.space.size()

    def measure(self, config: Config) -> Optional[float]:
        """Its time in nanoseconds; None if it failed."""
        return self._recorded.measure(config)

    def search(self, strategy: str = "", *, seed: int = 0) -> Search:
        return Search(self._recorded.space, strategy, seed)

    def play(self, strategy: str = "", *, seed: int = 0, trials: int = 100, batch: int = 1) -> List[float]:
        """The share of the best speed that a search has found after each of its trials."""
        search, best = self.search(strategy, seed=seed), 0.0
        shares: List[float] = []
        while len(shares) < trials:
            configs = search.ask(min(batch, trials - len(shares)))
            if not configs:
                break
            results = [(config, self.measure(config)) for config in configs]
            search.tell_all(results)
            for _, value in results:
                best = max(best, self.best_ns / value if value is not None else 0.0)
                shares.append(best)
        return shares


def _values(name: str, values: Any) -> List[Any]:
    """A knob's values as a list. A mapping is a range of a job file: {"from": 1, "to": 64, "step": 8}."""
    if isinstance(values, Mapping):
        return _range(name, dict(values))
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise errors.InvalidRequest(f"knobs: {name}: expected a list of values or a range, found {values!r}")
    listed = [value.item() if hasattr(value, "item") else value for value in values]
    words = bool(listed) and isinstance(listed[0], str)
    if any(isinstance(value, bool) or not isinstance(value, str if words else int) for value in listed):
        raise errors.InvalidRequest(f"knobs: {name}: expected integers, or words, found {listed!r:.80}")
    if len(set(listed)) != len(listed):
        raise errors.InvalidRequest(f"knobs: {name}: found a value twice in {listed!r:.80}")
    if len(listed) > 4096:
        raise errors.InvalidRequest(f"knobs: {name}: expected at most 4096 values, found {len(listed)}")
    return listed


def _range(name: str, keys: Dict[str, Any]) -> List[int]:
    unknown = set(keys) - {"from", "to", "step", "powers_of"}
    numbers = all(isinstance(value, int) and not isinstance(value, bool) for value in keys.values())
    if unknown or not numbers or "from" not in keys or "to" not in keys or ("step" in keys and "powers_of" in keys):
        raise errors.InvalidRequest(f'knobs: {name}: expected {{"from": 1, "to": 64, "step": 8}} or "powers_of" for "step", found {keys!r}')
    low, high = keys["from"], keys["to"]
    if "powers_of" in keys:
        base = keys["powers_of"]
        if base < 2 or low < 1:
            raise errors.InvalidRequest(f"knobs: {name}: powers_of: expected at least 2, from 1 on, found {keys!r}")
        powers, value = [], 1
        while value <= high:
            if value >= low:
                powers.append(value)
            value *= base
        return _values(name, powers)
    step = keys.get("step", 1)
    if step < 1 or high < low or (high - low) // step >= 4096:
        raise errors.InvalidRequest(f"knobs: {name}: expected a step of at least 1 and at most 4096 values, found {keys!r}")
    return list(range(low, high + 1, step))
