# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every possible error of a user's model is one sentence with the line of the file; right models give none."""

from __future__ import annotations

import brought
import pytest
from workload_cases import experiment_workload

from jaxbench import discovery
from jaxbench.errors import UserError
from jaxbench.workloads import inspection

PARAMS = 'return {"w": jax.random.normal(key, (3, 5))}, {"mean": jnp.zeros(5)}'
RETURN = 'return jnp.mean(each), ({"mean": mean}, {"accuracy": jnp.mean(logits.argmax(-1) == batch["label"])})'
LOGITS = 'logits = batch["x"] @ params["w"]'
EXAMPLE = '{"x": Field((3,)), "label": Field((), jnp.int32, classes=5)}'
MODEL = "    model = from_linen(nn.Dense(5), jax.ShapeDtypeStruct((1, 3), jnp.float32))\n    def init(key):\n"


def told(tmp_path, *changes):
    path = brought.write(tmp_path, *changes)
    with pytest.raises(UserError) as caught:
        inspection.inspect(brought.build(path), batch=16)
    sentence = str(caught.value)
    assert "\n" not in sentence and len(sentence) < 700
    return path, sentence


def test_a_model_that_is_right_is_told_nothing(tmp_path):
    inspection.inspect(brought.build(brought.write(tmp_path)), batch=16)


# What init returns instead, and the message, which names the line of init.
W = 'return {"w": jnp.ones((3, 5))'
IN_INIT = [
    (W + "}", "a dict with 'w': it must return (params, model_state)"),
    (W + "}, {}, {}", "a tuple of 3"),
    ("pass", "init returns None"),
    ("return {}, {}", "no parameters"),
    (
        W + ', "scale": {"a": 0.5}}, {}',
        "the parameter 'scale/a', which is a Python float: numbers must be float arrays",
    ),
    (W + ', "n": jnp.arange(3)}, {}', "'n', which is int32 of shape (3,)"),
    (W + ', "act": "relu"}, {}', "'act', which is a Python str"),
    (W + '}, {"_overwrite_with_gradient": {"scale": jnp.ones(1)}}', "Flax overwrites the collection"),
    (W + ', "net": {"_overwrite_with_gradient": jnp.ones(1)}}, {}', "(--config.lever.precision=bfloat16)"),
    (W + '}, {"k": jax.random.key(0)}', "the state 'k', which is a random key: store jax.random.key_data(key)"),
]
# What the loss returns instead, and the message, which names the line of loss.
IN_LOSS = [
    ("jnp.mean(each)", "returns float32 of shape (): a loss returns (scalar, (model_state, metrics))"),
    ('jnp.mean(each), {"accuracy": jnp.mean(each)}', "a loss returns (scalar, ("),
    ('each, ({"mean": mean}, {})', "a loss that is float32 of shape (16,): it must be a float scalar"),
    ('0.0, ({"mean": mean}, {})', "a loss that is a Python float"),
    ('jnp.mean(each), ({"mean": mean}, {"all": each})', "the metric 'all', which is float32 of shape (16,)"),
    ('jnp.mean(each), ({"mean": mean}, {"lr": 0.1})', "the metric 'lr', which is a Python float"),
    ('jnp.mean(each), ({"mean": mean}, [jnp.mean(each)])', "metrics that are a list of 1"),
    ("jnp.mean(each), ({}, {})", "'mean' is returned as nothing and was given as float32"),
    (
        'jnp.mean(each), ({"mean": mean, "var": mean}, {})',
        "'var' is returned as float32 of shape (5,) and was given as nothing",
    ),
    (
        'jnp.mean(each), ({"mean": mean[:2]}, {})',
        "returned as float32 of shape (2,) and was given as float32 of shape (5,)",
    ),
]
# The line of the logits instead, the message, and a piece of the line that is named.
IN_LOGITS = [
    (
        'logits = batch["image"] @ params["w"]',
        "KeyError: 'image'. The batch has 'x', 'label'; the parameters have 'w'; the state has 'mean'.",
        'batch["image"]',
    ),
    ('logits = batch["x"].T @ params["w"]', "The batch has 'x' float32 (16, 3), 'label' int32 (16,).", 'batch["x"].T'),
    (LOGITS + '; batch["label"] = batch["x"]', "The batch has", "each = optax"),
    (LOGITS + "\n        if logits.sum() > 0: logits = -logits", "Use jnp.where or jax.lax.cond", "if logits.sum()"),
    ('logits = np.asarray(batch["x"]) @ params["w"]', "Use jax.numpy", "np.asarray"),
]
# The fields of the example instead, and the message, which names no line.
LABEL = '"label": Field((), jnp.int32, classes=5)}'
IN_EXAMPLE = [
    ('{"x": Field((3,)), "label": Field((), classes=5)}', "'label' of the example has classes=5 and the dtype float32"),
    ('{"x": Field((3,)), "label": Field((), jnp.int32)}', "'label' of the example has the dtype int32 and no classes"),
    ('{"x": Field((None, 3)), ' + LABEL, "without the batch axis"),
    ('{"x": Field(3), ' + LABEL, "has the shape 3"),
    ('{"x": (3,), ' + LABEL, "'x' of the example is a tuple of 1"),
    ('{"x": Field((3,), "flaot"), ' + LABEL, "has the dtype 'flaot'"),
]
CASES = [
    *((PARAMS, *case, "def init") for case in IN_INIT),
    *((RETURN, f"return {new}", said, "def loss") for new, said in IN_LOSS),
    *((LOGITS, *case) for case in IN_LOGITS),
    *((EXAMPLE, *case, "") for case in IN_EXAMPLE),
    (PARAMS, "return {'w': jnp.ones((3, 5)) @ jnp.ones(2)}, {}", "TypeError: dot_general", "jnp.ones(2)"),
    (
        "def loss(params, model_state, batch, key)",
        "def loss(params, batch)",
        "loss takes (params, batch): it is called as loss(params, model_state, batch, key)",
        "def loss",
    ),
    (
        EXAMPLE,
        '{"x": Field((16, 3)), "label": Field((16,), jnp.int32, classes=5)}',
        "if 16 is the number of examples, leave it out of every Field",
        "reshape",
    ),
    ("optax.sgd(0.1)", "optax.sgd", "the optimizer is of type function and must be an optax transformation", ""),
    ("loss=loss", "loss=3", "loss is of type int and must be a function, loss(params", ""),
]


@pytest.mark.parametrize(("old", "new", "said", "line"), CASES)
def test_an_error_is_one_sentence_with_the_line(tmp_path, old, new, said, line):
    reshaped = ((LOGITS, 'logits = batch["x"].reshape(16, 3) @ params["w"]'),) if line == "reshape" else ()
    path, sentence = told(tmp_path, (old, new), *reshaped)
    assert said in sentence
    start = f"'{path}', line {brought.line_with(path, line)}: " if line else "'mine': "
    assert sentence.startswith(start), sentence


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ('model.apply(params, batch["x"])', "apply() missing 1 required positional argument"),
        ('model(params, model_state, batch["x"])', "'PureModel' object is not callable"),
        ('model.apply(params, model_state, batch["x"]) + 0.0', "tuple"),
    ],
)
def test_a_model_that_is_called_wrongly_is_told_how_to_call_it(tmp_path, call, named):
    changes = ("    def init(key):\n", MODEL), (PARAMS, "return model.init(key)"), (LOGITS, f"logits = {call}")
    path, sentence = told(tmp_path, *changes)
    assert sentence.startswith(f"'{path}', line {brought.line_with(path, call)}: ")
    assert named in sentence and sentence.endswith(f". {inspection.CALL[:1].upper()}{inspection.CALL[1:]}.")


def test_an_error_inside_flax_names_the_persons_line(tmp_path):
    changes = ("    def init(key):\n", MODEL), (PARAMS, "return model.init(key)")
    path, sentence = told(tmp_path, *changes, (LOGITS, 'logits, _ = model.apply(params, model_state, batch["x"].T)'))
    assert sentence.startswith(f"'{path}', line {brought.line_with(path, 'model.apply')}: Scope")


def test_parameters_of_a_class_that_is_no_pytree_are_named(tmp_path):
    _, sentence = told(tmp_path, (PARAMS, "return type('Box', (), {})(), {}"))
    assert "returns parameters of the class Box, which JAX does not know as a pytree: register it" in sentence


def test_what_an_error_announces_is_printed(tmp_path):
    """Flax' message ends its first paragraph with "Consider one of the following options:"."""
    path = tmp_path / "listed.py"
    path.write_text(
        "import jax\nfrom flax import nnx\n\nclass Net(nnx.Module):\n    def __init__(self, rngs):\n"
        "        self.layers = [nnx.Linear(2, 2, rngs=rngs)]\n\n"
        "def build(config):\n    return Net(nnx.Rngs(0))\n"
    )
    with pytest.raises(
        UserError, match=r"listed.py', line 6: ValueError: .*options: 1\. .* try using nnx\.List"
    ) as caught:
        discovery.build(str(path), None)
    assert "\n" not in str(caught.value)


def test_errors_of_our_functions_inside_a_loss_get_the_users_line(tmp_path):
    wrong = "from jaxbench.errors import UserError\n        raise UserError('use this.')\n        "
    path, sentence = told(tmp_path, (LOGITS, wrong + LOGITS))
    assert sentence == f"'{path}', line {brought.line_with(path, 'raise UserError')}: use this."


def test_an_error_in_a_neighbouring_file_names_that_file(tmp_path):
    (tmp_path / "beside_mine.py").write_text("def logits(x, w):\n    return x.T @ w\n")
    called = (LOGITS, 'logits = beside_mine.logits(batch["x"], params["w"])')
    _, sentence = told(tmp_path, ("import jax\n", "import jax\nimport beside_mine\n"), called)
    assert sentence.startswith(f"'{tmp_path / 'beside_mine.py'}', line 2: ")


@pytest.mark.parametrize("name", ["alexnet", "gcn", "gpt", "lstm", "recsys", "resnet18", "vit"])
def test_our_own_models_are_told_nothing(name):
    inspection.inspect(experiment_workload(name), batch=16)


def test_a_line_is_a_persons_own_only_in_their_files(tmp_path):
    path = brought.write(tmp_path)
    brought.build(path)
    assert discovery.is_theirs(path) and discovery.is_theirs(str(tmp_path / "neighbour.py"))
    others = inspection.__file__, pytest.__file__, str(tmp_path / "v/site-packages/x.py")
    assert not any(map(discovery.is_theirs, others))


def test_an_error_outside_of_the_users_file_is_unchanged():
    error = ValueError("no")
    assert discovery.with_user_line(error) is error
    with pytest.raises(ValueError, match="no"), discovery.naming_lines():
        raise error
    with pytest.raises(UserError, match=r"^the loss: ValueError: no\. Do that\.$"):
        with discovery.naming_lines("the loss", lambda error: "Do that."):
            raise error
