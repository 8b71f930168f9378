# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The definitions on a page: sections of docs/metrics as HTML, without external links."""

from __future__ import annotations

import re

from jaxbench.report import page


def test_every_section_is_safe_to_carry() -> None:
    every = page.definitions()
    made = page.used(frozenset(every))
    assert [id for id, *_ in made] == [f"def-{anchor}" for anchor in every]
    text = "".join(html for *_, html in made)
    assert set(re.findall(r'(?:href|src)="([^"]{0,5})', text)) == {"#def-"}
    assert not re.search(r"https?://|<script|<img|<!--", text)
    assert {link for link in re.findall(r'href="#([^"]+)"', text)} <= {id for id, *_ in made}
    assert "<table>" in text and "<code>step_s</code>" in text


def test_a_link_to_what_is_not_on_the_page_is_text() -> None:
    ((_, heading, alone),) = page.used(frozenset({"time-per-step"}))
    both = dict((id, html) for id, _, html in page.used(frozenset({"time-per-step", "intervals"})))
    assert heading == "Time per step" and "see Intervals" in alone and "<a" not in alone
    assert 'see <a href="#def-intervals">Intervals</a>' in both["def-time-per-step"]


def test_angle_brackets_in_the_text_are_not_markup() -> None:
    assert page._definition_html("a <b>word</b> < 3 `<i>`", ()) == (
        "<p>a &lt;b&gt;word&lt;/b&gt; &lt; 3 <code>&lt;i&gt;</code></p>\n"
    )
