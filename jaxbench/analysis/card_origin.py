# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The runs that a machine's card was made of: where they lie, and whether they say what the card says.

A card is the ceiling of many runs, so an edited peak would make all of them look better. Its hash shows an edit. Its
runs, where they lie near it, show one whose hash was computed again.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from jaxbench.records.store import MANIFEST, RunFolder

# What tells the entries of a list apart, and the numbers that they are believed for.
KEYS = {
    "peaks": ("quantity", "dtype", "platform", "cores", "level"),
    "launch": ("op", "impl", "platform", "cores", "point"),
    "links": ("op", "dtype", "devices", "mesh", "axis", "group_processes", "group_hosts"),
    "transfers": ("op", "source", "target"),
}
NUMBERS = ("value", "hi", "alpha_s", "beta_bytes_per_s", "bus_bytes_per_s")
# Relative. A later version may compute a number from the same records in another way, as of an experiment's card.
SLACK = 0.1


def runs_near(path: Path, made_of: list[str]) -> list[RunFolder]:
    """The runs that began at these times, in this order: beside the card `path`, or in a folder beside it, as the card
    of a machine lies beside the folder of its runs, and its copies in other runs. [] unless all are found.
    """
    own = path.resolve().parent
    places = (own, own.parent)
    found = [manifest for place in places for depth in ("*", "*/*") for manifest in place.glob(f"{depth}/{MANIFEST}")]
    began = {_began(manifest): RunFolder(manifest.parent) for manifest in found}
    return [began[time] for time in made_of] if made_of and all(time and time in began for time in made_of) else []


def _began(manifest: Path) -> str:
    try:
        return str(json.loads(manifest.read_text(encoding="utf-8")).get("started", ""))
    except (ValueError, AttributeError, OSError):  # a damaged run is nobody's origin
        return ""


def contradiction(card: dict[str, Any], made: dict[str, Any]) -> str:
    """How a card contradicts the one that its runs make, as a clause; "" if it does not."""
    for name, value in made["machine"].items():
        if name in card["machine"] and card["machine"][name] != value:
            return f"its machine has {name} {card['machine'][name]!r}, and its runs {value!r}"
    for name, keys in KEYS.items():
        stated, found = ({tuple(_at(each, key) for key in keys): each for each in one[name]} for one in (card, made))
        if stated.keys() != found.keys() or len(card[name]) != len(made[name]):
            return f"its {name} and its runs do not have the same entries"
        for key, each in found.items():
            for number in NUMBERS:
                says, is_ = stated[key].get(number), each.get(number)
                if "again" in each and "again" not in stated[key]:  # an older card: this is its value
                    is_ = {"value": each["again"], "hi": says}.get(number, is_)
                if not _agree(says, is_):
                    return f"it has {number} {says!r} of {' '.join(filter(None, map(str, key)))}, and its runs {is_!r}"
    return ""


def _at(entry: dict[str, Any], key: str) -> Any:
    """Links of older cards lie in one process."""
    return entry.get(key) or 1 if key.startswith("group_") else entry.get(key)


def _agree(stated: Any, found: Any) -> bool:
    if isinstance(stated, int | float) and isinstance(found, int | float):
        return math.isclose(stated, found, rel_tol=SLACK)
    return stated is None and found is None
