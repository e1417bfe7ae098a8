"""Every rule of the scenario, and that breaking one is told in one line: the field, the rule, the value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from strategies import BASE, changed

from dpsim.checks import InputError
from dpsim.forms import from_dict, to_query
from dpsim.scenario import Batch, check_app_bounds
from dpsim.simulate import check_size, simulate

GIVEN: dict[str, Any] = {"model.kind": "given", "model.gradient_sums": [[[1.0, 2.0]], [[3.0, 4.0]]]}
WORDS: dict[str, Any] = {"batch.lengths": None, "batch.valid": None, "model.vocabulary": 4}


def error_of(data: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        from_dict(data)
    return caught.value


# (the field named, a part of the rule, what is set)
NUMBERS: list[tuple[str, str, list[Any]]] = [
    ("seed", "whole number from 0 to 4294967295", [-1, 2**32, 0.5]),
    ("steps", "whole number from 1 to 1000", [0, 1001, 1.5, -1]),
    ("world_size", "whole number from 1 to 1024", [0, -4, 1025, 2.5]),
    ("model.vocabulary", "whole number from 2 to 64", [1, 65, 4.5]),
    ("model.width", "whole number from 1 to 16", [0, 17, 1.5]),
    ("batch.max_length", "whole number from 1 to 4096", [0, 4097]),
    ("batch.micro_batches", "whole number from 1 to 64", [0, 65, 1.5]),
    ("optimizer.learning_rate", "finite number of at least 0", [-0.1, 1e7]),
    ("optimizer.momentum", "of at least 0 and below 1", [-0.1, 1, 1.5]),
    ("optimizer.beta1", "of at least 0 and below 1", [-0.1, 1]),
    ("optimizer.beta2", "of at least 0 and below 1", [-0.1, 1]),
    ("optimizer.epsilon", "above 0", [0, -1e-8, 2]),
    ("optimizer.clip_norm", "above 0", [0, -1]),
    ("compute.forward_s_per_token", "of at least 0", [-1e-9, 3601]),
    ("compute.backward_s_per_token", "of at least 0", [-1e-9, 3601]),
    ("compute.optimizer_s", "of at least 0", [-1, 3601]),
    ("compute.work_factor", "whole number from 1", [0, 1.5, 1_000_001]),
    ("network.latency_s", "of at least 0", [-0.001, 3601]),
    ("network.bandwidth_bytes_per_s", "of at least 0.001", [0, -1, 1e19]),
    ("network.gradient_bytes", "above 0", [0, -1, 1e16]),
    ("buckets.cap_bytes", "above 0", [0, -1]),
]
NO_NUMBERS: list[Any] = ["3", True, [], {}, {"a": 1}, float("nan"), float("inf"), float("-inf")]


@pytest.mark.parametrize(
    ("field", "rule", "value"),
    [(f, rule, v) for f, rule, values in NUMBERS for v in values]
    + [(f, "number", v) for f, _, _ in NUMBERS for v in NO_NUMBERS if (f, v) != ("batch.micro_batches", [])],
)
def test_a_number_out_of_its_bounds(field: str, rule: str, value: Any) -> None:
    error = error_of(changed({field: value}))
    assert str(error) == f"{field}: {error.rule}, got {value!r}"
    assert rule in error.rule


RULES: list[tuple[str, str, dict[str, Any]]] = [
    ("name", "is needed", {"name": None}),
    ("name", "one line of at most 64", {"name": "a" * 65}),
    ("name", "one line of at most 64", {"name": "two\nlines"}),
    ("name", "one line of at most 64", {"name": 3}),
    ("title", "one line of at most 200", {"title": "a" * 201}),
    ("batch", "is needed", {"batch": None}),
    ("batch", "must be a table", {"batch": [1, 2]}),
    ("model", "must be a table", {"model": "bigram"}),
    ("colour", "unknown key", {"colour": 1}),
    ("model.depth", "unknown key", {"model.depth": 1}),
    ("collective", "must be one of ring, tree", {"collective": "star"}),
    ("collective", "must be one of", {"collective": ["ring"]}),
    ("reduction", "must be one of token_weighted", {"reduction": "mean"}),
    ("reduction", "must be a list", {"reduction": 3}),
    ("reduction", "must have 2 entries", {"reduction": [[1.0]]}),
    ("reduction[1]", "must have 1 entries", {"reduction": [[1.0], [1.0, 2.0]]}),
    ("reduction[0][0]", "finite number", {"reduction": [[float("nan")], [1.0]]}),
    ("model.kind", "must be one of bigram", {"model.kind": "transformer"}),
    ("model.gradient_sums", "is needed for the model 'given'", {"model.kind": "given"}),
    ("model.gradient_sums", "only there", {"model.gradient_sums": [[[1]], [[2]]]}),
    ("model.parameters", "must have 4 entries", {"model.kind": "scalar", "model.vocabulary": 4,
                                                 "model.parameters": [1.0]}),
    ("model.parameters[1]", "finite number", {**GIVEN, "model.parameters": [1.0, float("inf")]}),
    ("model.gradient_sums[1][0][1]", "finite number",
     {**GIVEN, "model.gradient_sums": [[[1, 2]], [[3, float("nan")]]]}),
    ("model.gradient_sums[1][0][0]", "finite number",
     {**GIVEN, "model.gradient_sums": [[[1, 2]], [[float("-inf"), 1]]]}),
    ("model.gradient_sums[1][0]", "must have 2 entries",
     {**GIVEN, "model.gradient_sums": [[[1, 2]], [[3]]]}),
    ("model.gradient_sums", "one entry per rank, 2", {**GIVEN, "model.gradient_sums": [[[1, 2]]]}),
    ("model.gradient_sums", "must have [1, 1] micro-batches",
     {**GIVEN, "model.gradient_sums": [[[1]], [[2], [3]]]}),
    ("batch.shard", "must not repeat", {**GIVEN, "batch.lengths": [1, 1, 1], "batch.valid": None,
                                        "batch.shard": "strided"}),
    ("batch", "needs one of", {"batch.sequences": 3}),
    ("batch", "needs one of", {"batch.lengths": None, "batch.valid": None}),
    ("batch", "at most 65536 tokens", {"batch.lengths": [4096] * 17, "batch.valid": None}),
    ("batch.lengths", "must have 1 to 4096 entries", {"batch.lengths": [], "batch.valid": None}),
    ("batch.lengths[0]", "whole number from 0 to 4096", {"batch.lengths": [-1, 3]}),
    ("batch.lengths[1]", "whole number", {"batch.lengths": [1, 2.5]}),
    ("batch.lengths[1]", "whole number", {"batch.lengths": [1, "3"]}),
    ("batch.valid", "must have 2 entries", {"batch.valid": [1]}),
    ("batch.valid[1]", "whole number from 0 to 3", {"batch.valid": [1, 4]}),
    ("batch.valid[0]", "whole number", {"batch.valid": [0.5, 1]}),
    ("batch.valid", "goes with lengths", {"batch.lengths": None, "batch.sequences": 2}),
    ("batch.labels", "is needed beside", {**WORDS, "batch.tokens": [[1]]}),
    ("batch.labels", "goes with tokens", {"batch.labels": [[1]]}),
    ("batch.labels[0]", "must have 2 entries", {**WORDS, "batch.tokens": [[1, 2]], "batch.labels": [[1]]}),
    ("batch.tokens[0][1]", "from 0 to 3", {**WORDS, "batch.tokens": [[1, 4]], "batch.labels": [[1, 1]]}),
    ("batch.labels[0][0]", "from 0 to 3", {**WORDS, "batch.tokens": [[1]], "batch.labels": [[4]]}),
    ("batch.labels[0][0]", "from 0 to 3", {**WORDS, "batch.tokens": [[1]], "batch.labels": [[-1]]}),
    ("batch.sequences", "from 1 to 4096", {"batch.lengths": None, "batch.valid": None, "batch.sequences": 0}),
    ("batch.shard", "must be one of contiguous", {"batch.shard": "random"}),
    ("batch.assignment", "is needed for the shard", {"batch.shard": "by_hand"}),
    ("batch.assignment", "only there", {"batch.assignment": [[[0]], [[1]]]}),
    ("batch.assignment", "exactly once", {"batch.shard": "by_hand", "batch.assignment": [[[0]], [[0]]]}),
    ("batch.assignment", "one entry per rank", {"batch.shard": "by_hand", "batch.assignment": [[[0, 1]]]}),
    ("batch.assignment[1][0][0]", "from 0 to 1",
     {"batch.shard": "by_hand", "batch.assignment": [[[0]], [[2]]]}),
    ("batch.micro_batches", "must be left out", {"batch.shard": "by_hand", "batch.micro_batches": 2,
                                                 "batch.assignment": [[[0]], [[1]]]}),
    ("batch.micro_batches", "one entry per rank, 2", {"batch.micro_batches": [1, 1, 1]}),
    ("batch.micro_batches[1]", "whole number from 1 to 64", {"batch.micro_batches": [1, 0]}),
    ("collective", "alone or followed by “, without ROW”", {"collective": "ring, sometimes"}),
    ("collective", "must name a row from 0 to 3", {"collective": "ring, without 4"}),
    ("collective", "must be an algorithm alone on one rank",
     {"world_size": 1, "collective": "ring, not awaited"}),
    ("optimizer.kind", "must be one of sgd", {"optimizer.kind": "lion"}),
    ("optimizer.clip", "must be one of after, before", {"optimizer.clip": "never"}),
    ("compute.speed", "one entry per rank, 2", {"compute.speed": [1.0]}),
    ("compute.speed[0]", "of at least 0.001", {"compute.speed": [0, 1]}),
    ("buckets.overlap", "true or false", {"buckets.overlap": 1}),
    ("buckets.sync_every_micro_batch", "true or false", {"buckets.sync_every_micro_batch": "yes"}),
]  # fmt: skip


@pytest.mark.parametrize(("field", "rule", "changes"), RULES)
def test_a_broken_rule(field: str, rule: str, changes: dict[str, Any]) -> None:
    error = error_of(changed(changes))
    message = str(error)
    assert message.startswith(f"{field}: ")
    assert rule in message
    assert ", got " in message
    assert len(message.splitlines()) == 1
    assert (error.field, error.rule in message) == (field, True)


def test_the_base_and_its_variants_are_valid() -> None:
    assert from_dict(BASE).world_size == 2
    assert from_dict(changed(GIVEN)).model.size == 2
    words = {**WORDS, "batch.tokens": [[1, 3]], "batch.labels": [[3, -100]]}
    assert simulate(from_dict(changed(words))).valid_tokens.sum() == 1
    assert from_dict(changed({"network.latency_s": 0, "optimizer.learning_rate": 0})).network.latency_s == 0.0


WHOLE = ["seed", "steps", "world_size", "model.vocabulary", "model.width", "batch.micro_batches",
         "compute.work_factor"]  # fmt: skip


@pytest.mark.parametrize("field", WHOLE)
def test_a_whole_number_may_be_written_with_a_decimal_point(field: str) -> None:
    """JSON writers put 2 as 2.0; it is the same scenario, with the same trace and the same written form."""
    whole, decimal = (from_dict(changed({field: value})) for value in (2, 2.0))
    assert to_query(decimal) == to_query(whole)
    assert simulate(decimal).to_json() == simulate(whole).to_json()


def test_the_sizes_of_a_drawn_batch_may_be_written_with_a_decimal_point() -> None:
    sizes = {"batch.lengths": None, "batch.valid": None, "batch.sequences": 4, "batch.max_length": 3}
    decimal = {key: value if value is None else float(value) for key, value in sizes.items()}
    drawn, other = (simulate(from_dict(changed(changes))) for changes in (sizes, decimal))
    assert other.to_json() == drawn.to_json()


@pytest.mark.parametrize("value", [{"a": [1] * 99}, "x" * 999, list(range(999))])
def test_a_long_value_is_cut(value: Any) -> None:
    assert len(str(error_of(changed({"steps": value})))) < 200


def test_a_trace_of_more_than_200_000_events() -> None:
    ring = {
        "world_size": 200,
        "batch.lengths": [1] * 200,
        "batch.valid": None,
        "reduction": "sum_over_world_size",
    }
    assert check_size(from_dict(changed(ring))) is None
    for more in ({"steps": 2}, {"reduction": "token_weighted"}, {"world_size": 1024}):
        with pytest.raises(InputError, match=r"^scenario: must have at most 200000 events .*, got \d+$"):
            simulate(from_dict(changed({**ring, **more})))


def test_a_trace_of_too_many_numbers() -> None:
    many = {"steps": 1000, "model.vocabulary": 64, "model.width": 16, "batch.micro_batches": 2}
    with pytest.raises(InputError, match=r"^scenario: must have at most 8000000 numbers"):
        simulate(from_dict(changed(many)))


def test_the_bounds_of_the_app() -> None:
    for field, most in (("world_size", 64), ("steps", 200)):
        assert check_app_bounds(from_dict(changed({field: most})))
        with pytest.raises(
            InputError, match=f"^{field}: must be a whole number from 1 to {most}, got {most + 1}$"
        ):
            check_app_bounds(from_dict(changed({field: most + 1})))


def test_a_run_that_diverges_is_refused_or_stays_finite() -> None:
    """A learning rate within its bounds may blow up; NaN never travels."""
    parts = {"batch.lengths": [4] * 4, "batch.valid": None, "steps": 60, "optimizer.learning_rate": 1e6}
    try:
        with np.errstate(all="ignore"):
            made = simulate(from_dict(changed(parts)))
    except InputError:
        return
    assert np.all(np.isfinite(made.parameters))
    assert np.all(np.isfinite(made.payload))
    assert made.to_json()


def test_a_batch_made_in_python_is_checked_like_one_from_a_file() -> None:
    with pytest.raises(InputError, match=r"^batch\.valid\[0\]: must be a whole number from 0 to 2, got 3$"):
        Batch(lengths=[2], valid=[3])
