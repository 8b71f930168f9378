# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench --install-completion`: a real shell completes words with the script that was written."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from doorway import command, environment

from jaxbench import discovery
from jaxbench.commands import install_completion

# Prints what the shell offers for a line with the cursor at its end, as the shell's own library would ask.
OF_BASH = """
source "$1"; COMP_LINE=$2; COMP_POINT=${#COMP_LINE}; read -ra COMP_WORDS <<<"$2"
[ "${2: -1}" = " " ] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _jaxbench; printf '%s\n' "${COMPREPLY[@]}"
"""


def install(home: Path, shell: str = "", *, login: str = "/bin/bash") -> subprocess.CompletedProcess[str]:
    words = command(f"--install-completion={shell}" if shell else "--install-completion")
    own = {**environment(), "HOME": str(home), "SHELL": login}
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        own.pop(name, None)
    return subprocess.run(words, env=own, cwd=home, capture_output=True, text=True)


def offered(script: Path, line: str) -> list[str]:
    done = subprocess.run(
        ["bash", "-c", OF_BASH, "bash", str(script), line], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_it_is_installed_once_and_loaded_by_the_shell(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("alias x=y")  # without an end of its line
    for _ in range(2):
        done = install(tmp_path)
        assert done.returncode == 0 and ".bashrc" in done.stdout, done.stdout + done.stderr
    first, line = (tmp_path / ".bashrc").read_text().splitlines()
    assert first == "alias x=y" and line.startswith("source ")
    script = Path(line.split()[1])
    assert offered(script, "jaxbench bis") == ["bisect"]
    assert offered(script, "jaxbench run gp") == ["gpt"]
    presets = {f"--preset={preset}" for preset in discovery.presets()}
    assert {*offered(script, "jaxbench run gpt --pres")} == {"--preset=", *presets}
    assert offered(script, "jaxbench run gpt --preset=sm") == ["smoke"]  # bash has split the word at "="
    assert offered(script, "jaxbench bisect --metric") == ["--metric="]
    flags = offered(script, "jaxbench train mlp --")
    assert "--elastic" in flags and "--elastic=" not in flags
    loaded = subprocess.run(
        ["bash", "--rcfile", str(tmp_path / ".bashrc"), "-ic", "complete -p jaxbench"],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert "_jaxbench" in loaded.stdout, loaded.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(tmp_path: Path, shell: str) -> None:
    done = install(tmp_path, shell)
    assert done.returncode == 0, done.stderr
    script = next(path for path in tmp_path.rglob("*jaxbench*") if path.is_file())
    text = script.read_text()
    assert "bisect" in text and "gpt" in text
    assert text.startswith("#compdef jaxbench\n" if shell == "zsh" else "complete -c jaxbench")
    if shutil.which(shell):
        subprocess.run([shell, "-n", str(script)], check=True)


def test_an_unknown_shell_is_refused(tmp_path: Path) -> None:
    for words, login in (("csh", "/bin/bash"), ("", "/bin/tcsh")):
        done = install(tmp_path, words, login=login)
        assert done.returncode == 2 and "zsh" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert not list(tmp_path.iterdir())


def test_every_verb_has_its_flags() -> None:
    every = install_completion.words()
    assert "gpt" in every["bisect"].arguments and "gpt" in every["ab"].arguments and not every["list"].arguments
    assert "--share_machine" in every["run"].flags and "--budget_s=" in every["ab"].flags
