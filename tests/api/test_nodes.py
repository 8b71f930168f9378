# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Classes of `__main__` that are pytree nodes are pytree nodes in another process, too."""

import json
import subprocess
import sys

from doorway import environment

SCRIPT = '''
import dataclasses, enum, sys
from typing import Any, NamedTuple

import jax
from flax import struct
from flax.training import train_state

from jaxbench.api import cells


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Data:
    w: Any
    kind: str = dataclasses.field(metadata={"static": True}, default="dense")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Data

    def again(self):
        return Outer(self.inner)  # a class that refers to itself


@struct.dataclass
class Struct:
    w: Any
    scale: float = struct.field(pytree_node=False, default=2.0)


class State(train_state.TrainState):
    ema: Any


@jax.tree_util.register_pytree_node_class
class Node:
    def __init__(self, w):
        self.w = w

    def tree_flatten(self):
        return (self.w,), "aux"

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


@jax.tree_util.register_pytree_with_keys_class
class Keys(Node):
    def tree_flatten_with_keys(self):
        return ((jax.tree_util.GetAttrKey("w"), self.w),), None


class Functions:
    def __init__(self, w):
        self.w = w


jax.tree_util.register_pytree_node(Functions, lambda x: ((x.w,), None), lambda _, w: Functions(*w))


class Pair(NamedTuple):
    w: Any
    b: Any


class Plain:
    pass


class Act(enum.Enum):
    RELU = 1


def build(config):
    """By name, the paths of the leaves of an instance, and of one that JAX has made."""
    state = State(step=0, apply_fn=None, params={"w": 1.0}, tx=None, opt_state=(), ema={"w": 2.0})
    trees = {
        "data": Data(1.0), "outer": Outer(Data(1.0)).again(), "struct": Struct(1.0), "state": state,
        "node": Node(1.0), "keys": Keys(1.0), "functions": Functions(1.0), "pair": Pair(1.0, 2.0),
    }
    assert jax.tree_util.all_leaves([Plain(), Act.RELU])
    again = jax.tree.map(lambda x: x + 1, trees)
    assert again["state"].ema == {"w": 3.0} and again["struct"].scale == 2.0 and again["data"].kind == "dense"
    assert again["state"].replace(step=5).step == 5
    return {
        name: [[jax.tree_util.keystr(path), x] for path, x in jax.tree.leaves_with_path(tree)]
        for name, tree in again.items()
    }


if __name__ == "__main__":
    import json

    open(sys.argv[1], "wb").write(cells.Pickled(build).data)
    print(json.dumps(build(None)))
'''
READ = """
import json, pickle, sys
first, again = (pickle.load(open(sys.argv[1], "rb")) for _ in range(2))
assert first["build"](None) == again["build"](None)  # read twice, registered once
print(json.dumps(again["build"](None)))
"""


def test_their_instances_have_the_leaves_that_they_have_in_the_notebook(tmp_path):
    script, pickled = tmp_path / "script.py", str(tmp_path / "build.pickle")
    script.write_text(SCRIPT)

    def run(*words):
        done = subprocess.run([sys.executable, *words, pickled], capture_output=True, text=True, env=environment())
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    there, here = run(str(script)), run("-c", READ)
    by_position = {"functions": [["[<flat index 0>]", 2.0]], "node": [["[<flat index 0>]", 2.0]]}
    assert there == here
    assert there["state"] == [[".step", 1], [".params['w']", 2.0], [".ema['w']", 3.0]]
    assert {name: there[name] for name in by_position} == by_position and there["keys"] == [[".w", 2.0]]
