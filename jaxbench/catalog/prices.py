# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The price of a device per hour, and its maximum power: `prices.csv`, or a file with the same columns.

Each line has its source, its date and its unit. Prices are never converted from one currency into another.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from jaxbench.catalog import hardware
from jaxbench.errors import UserError, did_you_mean

COLUMNS = ("device", "provider", "price", "unit", "date", "watts", "source")
OLD = datetime.timedelta(days=365)
_UNIT = re.compile(r"([A-Z]{3})/device-hour")


@dataclass(frozen=True, kw_only=True)
class Price:
    """One line of a file of prices.

    Attributes:
      device: a row of hardware.csv.
      per_device_hour: in `currency`, an ISO 4217 code.
      date: when the source gave this price.
      watts: the maximum power of one device, without its host and its cooling; None: not published.
    """

    device: str
    provider: str
    per_device_hour: float
    currency: str
    date: datetime.date
    watts: float | None
    source: str

    def old(self, today: datetime.date) -> bool:
        """Whether the price is more than a year old."""
        return today - self.date > OLD


def read(path: Path | None = None) -> list[Price]:
    """The catalogue's prices, or those of a file. Raises UserError that names the wrong line."""
    if path is None:
        name, text = "prices.csv", resources.files("jaxbench.catalog").joinpath("prices.csv").read_text("utf-8")
    else:
        name = str(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"--prices={path} cannot be read ({error}): give a CSV file of prices.") from error
    table = csv.DictReader(io.StringIO(text))
    if missing := [column for column in COLUMNS if column not in (table.fieldnames or ())]:
        raise UserError(f"{name} has no column '{missing[0]}': a file of prices has {','.join(COLUMNS)}.")
    found = [_price(f"{name}, line {table.line_num}", row) for row in table]
    if not found:
        raise UserError(f"{name} has no prices: write a line for each device, with {','.join(COLUMNS)}.")
    currencies = sorted({price.currency for price in found})
    if len(currencies) > 1:
        raise UserError(f"{name} has prices in {' and '.join(currencies)}: give all in one currency, such as USD.")
    return found


def _price(where: str, row: dict[str, str]) -> Price:
    row = {name: (text or "").strip() for name, text in row.items() if name}
    if row["device"] not in hardware.names():
        raise UserError(
            f"{where}: device '{row['device']}' is unknown: {did_you_mean(row['device'], hardware.names())}"
        )
    unit = _UNIT.fullmatch(row["unit"])
    if unit is None:
        raise UserError(
            f"{where}: unit '{row['unit']}' is not the unit of a price: write USD/device-hour, for example."
        )
    for name in ("provider", "source"):
        if not row[name]:
            raise UserError(f"{where} has no {name}: every price names where it is from.")
    try:
        date = datetime.date.fromisoformat(row["date"])
    except ValueError as error:
        raise UserError(f"{where}: date '{row['date']}' is not a day: write 2026-11-24, for example.") from error
    return Price(
        device=row["device"], provider=row["provider"], per_device_hour=_positive(where, "price", row["price"]),
        currency=unit[1], date=date, source=row["source"],
        watts=_positive(where, "watts", row["watts"]) if row["watts"] else None,
    )  # fmt: skip


def _positive(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UserError(f"{where}: {name} '{text}' is not a number above 0: write 2.90, for example.")
    return value
