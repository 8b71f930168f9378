# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`help VERB` and `VERB --help` show this verb: one sentence, its settings with defaults, and examples that parse."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from absl import flags
from doorway import jaxbench
from house.tree import ROOT

from jaxbench import commandline, levers
from jaxbench.commands import help as help_lib
from jaxbench.commands.new import TEMPLATES
from jaxbench.errors import UserError
from jaxbench.suites.papers import paper as library

SHELL = ("&&", "||", "|")


def lines(name: str) -> list[str]:
    return [*help_lib.of_verb(name, commandline.VERBS[name])]


@pytest.mark.parametrize("name", [name for name in commandline.VERBS if name != "help"])
def test_the_help_of_a_verb_is_about_this_verb(name: str) -> None:
    shown, verb = lines(name), commandline.VERBS[name]
    assert shown[0] == f"jaxbench {verb.usage}" and shown[1].rstrip().endswith((".", "?")), "one sentence first"
    assert len(verb.examples) == 3 and len({*verb.examples}) == 3
    text = "\n".join(shown)
    for flag in verb.flags:
        assert f"  --{flag}=" in text
    others = {flag for flag in commandline.OWN_FLAGS if f"  --{flag}=" in text}
    assert others == set(verb.flags), "no flag of another verb"
    assert ("--config." in text) == verb.configured


@pytest.mark.parametrize("name", commandline.VERBS)
def test_every_example_is_a_command(name: str) -> None:
    for example in commandline.VERBS[name].examples:
        for words in _commands(example):
            for name in [name for name in flags.FLAGS if name.split(".")[0] == "config"]:  # of the command before
                delattr(flags.FLAGS, name)
            try:
                commandline.check_command(words)
            except UserError as error:  # the files of an example are the reader's
                assert any(word in str(error) for word in ("mine.py", "mystep.py", "is not a folder", "holds no")), (
                    error
                )


def _commands(example: str) -> list[list[str]]:
    """The jaxbench commands of an example: words before and after && belong to the shell."""
    found: list[list[str]] = [["jaxbench"]]
    for word in shlex.split(example):
        if word in SHELL:
            found.append([])
        else:
            found[-1].append(word)
    return [words[1:] for words in found if words[:1] == ["jaxbench"]]


def test_a_setting_of_the_help_exists_and_shows_its_default() -> None:
    text = "\n".join(lines("run"))
    assert "--config.measure.rounds=auto" in text and "--config.strategy=jit_auto" in text and "--preset=auto" in text
    assert "=... " not in "".join(line for line in lines("run") if "--config.m" in line), "every setting has a default"


def test_the_doorway_shows_one_verb_and_every_verb() -> None:
    one, same, every = (jaxbench(*words) for words in (("run", "--help"), ("help", "run"), ("--help",)))
    assert one.returncode == same.returncode == every.returncode == 0
    assert one.stdout == same.stdout and "jaxbench run EXPERIMENT" in one.stdout and "advise" not in one.stdout
    assert all(f"  {verb.usage.split()[0]}" in every.stdout for verb in commandline.VERBS.values())
    wrong = jaxbench("help", "rn")
    assert wrong.returncode == 2 and "did you mean 'run'" in wrong.stderr


def test_list_has_one_line_for_each() -> None:
    kinds = ("strategies", "levers", "targets", "papers", "templates")
    done = jaxbench("list", *kinds)
    assert done.returncode == 0, done.stderr
    strategies = sorted(path.stem for path in (ROOT / "jaxbench/parallel/strategies").glob("[!_]*.py"))
    for name in (*strategies, *levers.LEVERS, "h100", "v5e", *library.names(), *TEMPLATES):
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"  {name} ")]
        assert len(lines) == 1 + (name == "context"), "which is a strategy and a lever"
        assert all(len(line.removeprefix(f"  {name}").strip()) > 8 for line in lines), "says what it is"
    wrong = jaxbench("list", "strategy")
    assert wrong.returncode == 2 and "did you mean 'strategies'" in wrong.stderr


def test_a_refused_run_leaves_no_lock(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "records.jsonl").write_text("")
    done = jaxbench("run", "mlp", f"--workdir={run}", "--share_machine")
    assert done.returncode == 2 and "has records but no config.json" in done.stderr
    assert not (run / ".lock").exists()
