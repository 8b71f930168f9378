# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The documentation as a site that needs no network, and the image that is built from the lock."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from doorway import environment
from house.tree import ROOT

from jaxbench.features.launch.engines import k8s


@pytest.mark.full
def test_the_site_builds_strictly_and_needs_no_network(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", f"--site-dir={tmp_path / 'site'}"]
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://localhost:9")
    done = subprocess.run(
        command, cwd=ROOT, env=environment() | proxies, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "site" / "index.html").read_text()
    assert "jaxbench measures how JAX training scales" in page and (tmp_path / "site/search/search_index.js").is_file()
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page)
    assert [address for address in loaded if "fonts" in address or address.endswith((".js", ".css"))] == []


def test_a_link_that_leads_nowhere_is_an_error() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    assert "not_found: warn" in text and "--strict" in (ROOT / "Makefile").read_text()


def test_the_image_is_built_from_the_lock_and_launch_names_it() -> None:
    docker = (ROOT / "Dockerfile").read_text()
    assert "PIP_CONSTRAINT=requirements.lock" in docker and "ARG EXTRAS" in docker and "cuda13" in docker
    for source in re.findall(r"^COPY ((?:\S+ )+)\S+$", docker, re.MULTILINE):
        for name in source.split():
            assert (ROOT / name).exists(), name
            assert f"!{name.split('/')[0]}\n" in (ROOT / ".dockerignore").read_text(), name
    assert "Dockerfile" in Path(k8s.__file__).read_text()
