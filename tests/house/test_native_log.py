# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A library that logs while it is loaded: its notices are in the run folder, its errors on the terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from doorway import QUICK_MLP, environment

NOTICE = "I0000 00:00:1795614466.095414   19083 cudart_stub.cc:31] Could not find cuda drivers on your machine"
ERROR = "E0000 00:00:1795614466.095414   19083 plugin.cc:1] the plug-in is broken"
# Every extension module logs as XLA's plug-in for CUDA does where there is no driver.
NOISY = f"""
import os
from importlib.machinery import ExtensionFileLoader
from jaxbench import app
real = ExtensionFileLoader.create_module
def noisy(loader, spec):
    os.write(2, b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\\n{NOTICE}\\n")
    if spec.name.endswith("_ml_dtypes_ext"):
        os.write(2, b"{ERROR}\\n")
    return real(loader, spec)
ExtensionFileLoader.create_module = noisy
app.main()
"""


def test_a_notice_of_a_library_is_in_the_logs_and_an_error_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ("run", "mlp", *QUICK_MLP, "--config.mesh.devices=1", "--config.measure.processes=1", f"--workdir={folder}")
    command = [sys.executable, "-c", NOISY, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=tmp_path, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"{ERROR}\n"
    assert "InitializeLog" not in done.stdout
    kept = (folder / "logs" / "libraries.log").read_text()
    assert kept.count(NOTICE) > 1 and kept.count(ERROR) == 1 and "\0" not in kept
