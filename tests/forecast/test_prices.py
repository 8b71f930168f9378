# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every price has a unit, a date and a source, and old prices are marked."""

from __future__ import annotations

import datetime

import pytest

from jaxbench.catalog import hardware
from jaxbench.errors import UserError
from jaxbench.forecast import advice

HEAD = ",".join(advice.COLUMNS)
GOOD = "NVIDIA H100 SXM,Mine,2.00,USD/device-hour,2026-11-01,700,an invoice"


def test_the_catalogue_can_be_read_and_names_its_sources():
    found = advice.read_prices()
    assert {price.device for price in found} <= set(hardware.names())
    assert all(price.source and 0 < price.per_device_hour < 100 for price in found)
    assert [price.watts for price in found if price.device == "Google TPU v5p"] == [None]  # not published


def test_a_price_is_old_after_a_year(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEAD}\n{GOOD}\n")
    (mine,) = advice.read_prices(path)
    assert (mine.per_device_hour, mine.currency, mine.watts) == (2.0, "USD", 700.0)
    assert not mine.old(datetime.date(2027, 11, 1))
    assert mine.old(datetime.date(2027, 11, 2))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            f"{HEAD}\n{GOOD.replace('USD/device-hour', '')}\n",
            "line 2: unit '' is not the unit of a price: write USD",
        ),
        (f"{HEAD}\n{GOOD.replace('/device-hour', '')}\n", "unit 'USD' is not the unit of a price"),
        (f"{HEAD.replace('unit,', '')}\n", "has no column 'unit'"),
        (f"{HEAD}\n", "has no prices"),
        (f"{HEAD}\n{GOOD.replace('2.00', 'two')}\n", "price 'two' is not a number above 0"),
        (f"{HEAD}\n{GOOD.replace('2.00', '-2')}\n", "price '-2' is not a number above 0"),
        (f"{HEAD}\n{GOOD.replace('H100 SXM', 'H100 SXN')}\n", "did you mean 'NVIDIA H100 SXM'"),
        (f"{HEAD}\n{GOOD.replace('2026-11-01', 'today')}\n", "date 'today' is not a day"),
        (f"{HEAD}\n{GOOD.replace('an invoice', '')}\n", "line 2 has no source"),
        (f"{HEAD}\n{GOOD}\n{GOOD.replace('USD', 'EUR')}\n", "has prices in EUR and USD"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=sentence):
        advice.read_prices(path)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        advice.read_prices(tmp_path / "nowhere.csv")
