# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""optax's optimizers and wrappers, grouped by their need for unsharded parameters.

Names are those of optax's functions, with variants after a colon. The parameters: `SHAPES`.
"""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import optax
from optax import contrib

SHAPES = {"b": (6,), "w": (4, 6)}
LABELS = {"b": "other", "w": "matrix"}
SGD, ADAM, NORM = optax.sgd(0.1), optax.adam(0.1), optax.clip_by_global_norm(1.0)


def names(module) -> set[str]:
    """The names of a module's functions that make an optimizer, or a part of one."""
    makes = {name: str(getattr(f, "__annotations__", {}).get("return", "")) for name, f in vars(module).items()}
    return {name for name, what in makes.items() if "GradientTransformation" in what and not name.startswith("_")}


def two(matrix, other=ADAM) -> optax.GradientTransformation:
    return optax.multi_transform({"matrix": matrix, "other": other}, LABELS)


def _rated(module, names: str) -> dict:
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        return {name: getattr(module, name)(0.1) for name in names.split()}


def _plain(module, names: str) -> dict:
    return {name: getattr(module, name)() for name in names.split()}


def _ndim(params):
    return jax.tree.map(lambda x: x.ndim > 1, params)


SCHEDULES = {
    "constant": optax.constant_schedule(0.1),
    "cosine_decay": optax.cosine_decay_schedule(0.1, 10),
    "cosine_onecycle": optax.cosine_onecycle_schedule(10, 0.1),
    "exponential_decay": optax.exponential_decay(0.1, 3, 0.9),
    "join": optax.join_schedules([optax.constant_schedule(0.1), optax.linear_schedule(0.1, 0.0, 10)], [1]),
    "piecewise_interpolate": optax.piecewise_interpolate_schedule("cosine", 0.1, {3: 0.1, 9: 0.2}),
    "piecewise_constant": optax.piecewise_constant_schedule(0.1, {1: 0.1}),
    "polynomial": optax.polynomial_schedule(0.1, 0.01, 2, 10),
    "warmup_cosine": optax.warmup_cosine_decay_schedule(0.0, 0.1, 2, 10),
}

VALUES = {
    **_rated(
        optax,
        """adabelief adadelta adagrad adam adamax adamaxw adamw adan amsgrad lion optimistic_adam optimistic_adam_v2
        optimistic_gradient_descent radam rmsprop rprop sgd sign_sgd signum yogi scale scale_by_learning_rate
        scale_by_rprop trace ema clip add_decayed_weights""",
    ),
    **_plain(
        optax,
        """identity keep_params_nonnegative scale_by_adadelta scale_by_adam scale_by_adamax scale_by_adan
        scale_by_amsgrad scale_by_belief scale_by_lion scale_by_optimistic_gradient scale_by_radam scale_by_rms
        scale_by_rss scale_by_sign scale_by_stddev scale_by_yogi set_to_zero""",
    ),
    **_rated(contrib, "acprop ademamix adopt madgrad simplified_ademamix scale_by_madgrad"),
    **_plain(
        contrib,
        """cocob schedule_free_adamw schedule_free_sgd scale_by_acprop scale_by_ademamix scale_by_adopt scale_by_cocob
        scale_by_simplified_ademamix""",
    ),
    **{f"scale_by_schedule: {name}": optax.scale_by_schedule(schedule) for name, schedule in SCHEDULES.items()},
    "sgd: momentum": optax.sgd(0.1, momentum=0.9, nesterov=True),
    "rmsprop: centered": optax.rmsprop(0.1, centered=True, momentum=0.9),
    "apply_every": optax.chain(optax.apply_every(2), SGD),
    "chain": optax.chain(optax.clip(0.5), optax.add_decayed_weights(0.1), SGD),
    "named_chain": optax.named_chain(("clip", optax.clip(0.5)), ("adam", ADAM)),
    "conditionally_mask": optax.conditionally_mask(ADAM, lambda step, **_: step < 1),
    "conditionally_transform": optax.conditionally_transform(ADAM, lambda step, **_: step < 1),
    "freeze": optax.chain(ADAM, optax.freeze({"b": True, "w": False})),
    "selective_transform": optax.selective_transform(ADAM, freeze_mask={"b": True, "w": False}),
    "inject_hyperparams": optax.inject_hyperparams(optax.adam)(SCHEDULES["cosine_decay"]),
    "masked": optax.masked(ADAM, {"b": False, "w": True}),
    "masked: by dimensions": optax.adamw(0.1, weight_decay=0.1, mask=_ndim),
    "multi_transform": two(ADAM, optax.sgd(0.1, momentum=0.9)),
    "partition": optax.partition({"matrix": ADAM, "other": SGD}, lambda params: LABELS),
    "MultiSteps": optax.MultiSteps(ADAM, 2).gradient_transformation(),
    "schedule_free": contrib.schedule_free(SGD, 0.1),
    "split_real_and_imaginary": contrib.split_real_and_imaginary(ADAM),
    "stateless": optax.stateless(lambda updates, params: jax.tree.map(jnp.tanh, updates)),
    "stateless_with_tree_map": optax.stateless_with_tree_map(lambda update, param: update * jnp.abs(param)),
    "with_extra_args_support": optax.with_extra_args_support(ADAM),
}
REDUCTIONS = {
    **_rated(optax, "adafactor fromage lamb lars novograd clip_by_block_rms"),
    **_plain(
        optax,
        """normalize_by_update_norm scale_by_distance_over_gradients scale_by_novograd scale_by_param_block_norm
        scale_by_param_block_rms scale_by_trust_ratio zero_nans""",
    ),
    "apply_if_finite": optax.apply_if_finite(ADAM, 3),
    "chain: clip and adam": optax.chain(NORM, ADAM),
    "clip_by_global_norm": NORM,
    "dog": contrib.dog(1.0),
    "dowg": contrib.dowg(1.0),
    "inject_hyperparams: clip": optax.inject_hyperparams(optax.clip_by_global_norm)(SCHEDULES["cosine_decay"]),
    "multi_transform: lamb": two(optax.lamb(0.1)),
    "MultiSteps: finite": optax.MultiSteps(ADAM, 2, should_skip_update_fn=optax.skip_not_finite),
    "normalize": contrib.normalize(),
    "sam": contrib.sam(SGD, optax.chain(contrib.normalize(), SGD)),
    "snapshot": optax.snapshot("norm", optax.tree.norm),
}
WHOLE = {
    "add_noise": optax.add_noise(0.1, 0.5, jax.random.key(0)),
    "adafactor: of factors": optax.adafactor(0.1, min_dim_size_to_factor=2),
    "adaptive_grad_clip": optax.adaptive_grad_clip(0.01),
    "centralize": optax.centralize(),
    "chain: clip and muon": optax.chain(NORM, contrib.muon(0.1)),
    "dadapt_adamw": contrib.dadapt_adamw(estim_lr0=0.1),
    "flatten": optax.flatten(ADAM),
    "galore": contrib.galore(0.1, rank=2),
    "mechanize": contrib.mechanize(ADAM),
    "muon": contrib.muon(0.1),
    "noisy_sgd": optax.noisy_sgd(0.1, key=jax.random.key(0)),
    "prodigy": contrib.prodigy(estim_lr0=0.1),
    "scale_by_galore": contrib.scale_by_galore(rank=2),
    "scale_by_lbfgs": optax.scale_by_lbfgs(),
    "scale_by_sm3": optax.scale_by_sm3(),
    "sm3": optax.sm3(0.1),
}
# Optimizers that no step can call, by the text of the message.
MORE = "needs 'value', 'grad', and 'value_fn'"
REFUSED = {
    "lbfgs": (optax.lbfgs(), MORE),
    "momo": (contrib.momo(0.1), "needs 'value'"),
    "momo_adam": (contrib.momo_adam(0.1), "needs 'value'"),
    "monitor": (optax.monitor({"norm": optax.tree.norm}), "a state with another structure"),
    "polyak_sgd": (optax.polyak_sgd(), "needs 'value'"),
    "reduce_on_plateau": (contrib.reduce_on_plateau(), "needs 'value'"),
    "scale_by_backtracking_linesearch": (optax.scale_by_backtracking_linesearch(3), MORE),
    "scale_by_polyak": (optax.scale_by_polyak(), "needs 'value'"),
    "scale_by_zoom_linesearch": (optax.scale_by_zoom_linesearch(3), MORE),
    "sophia": (contrib.sophia(0.1), "needs obj_fn"),
}
# For gradients of each example, for parameters in a class of optax's own, for matrices alone, for the inside of
# `monitor`; deprecated.
OTHERS = {
    *("differentially_private_aggregate", "dpsgd", "lookahead", "scale_by_muon", "measure_with_ema"),
    "inject_stateful_hyperparams",
}
