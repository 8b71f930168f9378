# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The runs from which a machine profile was made: where they are, and whether the profile agrees with them.

A profile is the ceiling for many runs, so an edited peak would make all of them look better. The hash shows an edit. If
the runs are near the profile, they also show an edit after which the hash was recomputed.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from jaxbench.records.store import MANIFEST, RunFolder

# The fields that identify the entries of each list, and the numbers that must agree.
KEYS = {
    "peaks": ("quantity", "dtype", "platform", "cores", "level"),
    "launch": ("op", "impl", "platform", "cores", "point"),
    "links": ("op", "dtype", "devices", "mesh", "axis", "group_processes", "group_hosts"),
    "transfers": ("op", "source", "target"),
}
NUMBERS = ("value", "hi", "alpha_s", "beta_bytes_per_s", "bus_bytes_per_s")
# Relative. As for result cards, a later version may compute a number from the same records differently.
SLACK = 0.1


def runs_near(path: Path, made_of: list[str]) -> list[RunFolder]:
    """The runs that began at the times `made_of`, in this order; [] unless all of them are found.

    The folder of the profile `path` and its parent are searched, two levels deep: a profile is next to the folder of
    its runs, and copies of it are in other runs.
    """
    own = path.resolve().parent
    places = (own, own.parent)
    found = [manifest for place in places for depth in ("*", "*/*") for manifest in place.glob(f"{depth}/{MANIFEST}")]
    began = {_began(manifest): RunFolder(manifest.parent) for manifest in found}
    return [began[time] for time in made_of] if made_of and all(time and time in began for time in made_of) else []


def _began(manifest: Path) -> str:
    try:
        return str(json.loads(manifest.read_text(encoding="utf-8")).get("started", ""))
    except (ValueError, AttributeError, OSError):  # a damaged run cannot be matched
        return ""


def contradiction(card: dict[str, Any], made: dict[str, Any]) -> str:
    """How a profile contradicts the profile made from its runs, as a clause; "" if it does not."""
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
                if "again" in each and "again" not in stated[key]:  # an older profile stored this as its value
                    is_ = {"value": each["again"], "hi": says}.get(number, is_)
                if not _agree(says, is_):
                    return f"it has {number} {says!r} of {' '.join(filter(None, map(str, key)))}, and its runs {is_!r}"
    return ""


def _at(entry: dict[str, Any], key: str) -> Any:
    """An entry's field. Links of older profiles do not have group sizes: they were within one process."""
    return entry.get(key) or 1 if key.startswith("group_") else entry.get(key)


def _agree(stated: Any, found: Any) -> bool:
    if isinstance(stated, int | float) and isinstance(found, int | float):
        return math.isclose(stated, found, rel_tol=SLACK)
    return stated is None and found is None
