"""Figures of dealing, accumulating, more ranks and memory, against torch's sampler, exact fractions, the
published tables, and runs of their own."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law
from torch.utils.data import DataLoader, DistributedSampler

from dpsim.checks import InputError
from dpsim.figures import UNDEFINED, figure
from dpsim.figures_data import STAGES, epoch_order, memory
from dpsim.forms import preset
from dpsim.published import published
from dpsim.scaling import speedup, speedup_same_batch
from dpsim.scenario import Batch, Buckets, Network, Scenario


def text(name: str, scenario: str = "sampler") -> str:
    return figure(preset(scenario), name).text


def value(name: str, scenario: str = "sampler") -> float:
    return figure(preset(scenario), name).number


# Dealing.


def hands(samples: int, ranks: int) -> list[list[int]]:
    """What torch's sampler deals to every rank, unshuffled."""
    data = range(samples)
    return [list(DistributedSampler(data, num_replicas=ranks, rank=r, shuffle=False)) for r in range(ranks)]


def test_hands_are_those_of_torch_s_sampler() -> None:
    for rank, hand in enumerate(hands(10, 4)):
        assert text(f"hand.{rank}") == ", ".join(map(str, hand))
        assert value(f"dealt_to.{rank}") == len(hand)


def test_the_mean_of_what_was_dealt_is_3_833_where_the_numbers_have_4_5() -> None:
    dealt = list(itertools.chain(*hands(10, 4)))
    assert value("mean_dealt") == pytest.approx(float(Fraction(sum(dealt), len(dealt))), rel=1e-15)
    assert (text("mean_dealt"), text("mean_number")) == ("3.833", "4.5")
    assert (value("dealt"), value("repeats"), value("sequences")) == (12, 2, 10)


def test_a_sequence_s_gradient_is_half_its_number_as_the_lesson_says() -> None:
    assert 2 * value("gradient.token_weighted.0") == pytest.approx(value("mean_dealt"))
    assert 2 * value("gradient.one_device.0") == pytest.approx(value("mean_number"))


@law(60)
@given(st.integers(1, 40), st.integers(1, 12))
def test_repeats_of_any_batch_are_those_of_torch_s_sampler(samples: int, ranks: int) -> None:
    scenario = Scenario(name="d", world_size=ranks, batch=Batch(lengths=[1] * samples, shard="strided"))
    dealt = sum(map(len, hands(samples, ranks)))
    assert figure(scenario, "repeats").value == dealt - samples == -samples % ranks
    kept = [
        DistributedSampler(range(samples), num_replicas=ranks, rank=r, drop_last=True) for r in range(ranks)
    ]
    assert figure(scenario, "without_rest").value == sum(map(len, kept))


SAMPLES, RANKS, BATCHES = ("cifar_images",), ("resnet_gpus", "goyal_gpus"), ("resnet_per_gpu", "bert_per_gpu")


@pytest.mark.parametrize(("samples", "ranks", "batch"), [*itertools.product(SAMPLES, RANKS, BATCHES)])
def test_steps_of_an_epoch_are_what_torch_s_loader_counts(samples: str, ranks: str, batch: str) -> None:
    d, r, b = (int(published()[name].value) for name in (samples, ranks, batch))
    data = range(d)
    sampler = DistributedSampler(data, num_replicas=r, rank=0)
    assert value(f"samples_per_rank.{samples}.{ranks}") == len(sampler)
    assert value(f"steps_per_epoch.{samples}.{ranks}.{batch}") == len(DataLoader(data, b, sampler=sampler))
    assert value(f"steps_alone.{samples}.{batch}") == len(DataLoader(data, b))
    assert value(f"repeats_of.{samples}.{ranks}") == len(sampler) * r - d
    assert value(f"global_batch.{ranks}.{batch}") == r * b


def test_the_four_real_runs_add_up() -> None:
    assert value("global_batch.resnet_gpus.resnet_per_gpu") == published()["resnet_batch"].value
    assert value("passes_needed.bert_batch.bert_gpus_without_accumulation.bert_per_gpu") == 1
    assert value("passes_needed.bert_batch.resnet_gpus.bert_per_gpu") == 32


def test_an_epoch_s_order_is_one_for_all_ranks_and_new_each_epoch() -> None:
    orders = [epoch_order(0, epoch, 10) for epoch in range(5)]
    assert all(sorted(order) == list(range(10)) for order in orders)
    assert len({tuple(order) for order in orders}) == 5
    assert epoch_order(0, 3, 10) == orders[3]
    assert text("order.3") == ", ".join(map(str, orders[3]))


# Accumulating.


def exact_sums(rank: int) -> list[Fraction]:
    """The first entries of the gradient sums of a rank's micro-batches."""
    sums = preset("accumulation").model.gradient_sums
    assert sums is not None
    return [Fraction(cell[0]) for cell in sums[rank]]


def counts(rank: int) -> list[int]:
    valid = preset("accumulation").batch.valid
    assert valid is not None
    return list(valid[3 * rank : 3 * rank + 3])


@pytest.mark.parametrize("rank", range(4))
def test_means_inside_a_rank_are_those_of_exact_fractions(rank: int) -> None:
    sums, valid = exact_sums(rank), counts(rank)
    of_means = sum((s / n for s, n in zip(sums, valid, strict=True)), Fraction(0)) / 3
    assert value(f"micro_mean.{rank}.0", "accumulation") == pytest.approx(float(of_means))
    assert value(f"mean.{rank}.0", "accumulation") == pytest.approx(float(sum(sums) / sum(valid)))
    assert [value(f"micro_valid.{rank}.{k}", "accumulation") for k in range(3)] == valid
    assert [value(f"micro_sum.{rank}.{k}.0", "accumulation") for k in range(3)] == sums


def test_a_token_of_a_small_micro_batch_counts_more_by_the_ratio_of_their_counts() -> None:
    for one, other in itertools.permutations(range(3), 2):
        name = f"micro_ratio.{{}}.0.{one}.{other}"
        exact = Fraction(counts(0)[other], counts(0)[one])
        found = value(name.format("mean_of_micro_batch_means"), "accumulation")
        assert found == pytest.approx(float(exact))
        assert value(name.format("token_weighted"), "accumulation") == pytest.approx(1)


def test_a_micro_batch_without_valid_tokens_has_no_mean() -> None:
    scenario = preset("empty-rank")
    assert figure(scenario, "micro_mean.0").text == UNDEFINED
    assert figure(scenario, "micro_ratio.mean_of_micro_batch_means.0.0.0").text == UNDEFINED


@pytest.mark.parametrize("collective", ["ring", "tree", "halving-doubling", "parameter-server"])
def test_every_pass_that_synchronises_sends_the_whole_gradient(collective: str) -> None:
    quiet = replace(preset("accumulation"), collective=collective)
    loud = replace(quiet, buckets=Buckets(sync_every_micro_batch=True))
    assert figure(quiet, "traffic").number == pytest.approx(1)
    assert figure(loud, "traffic").number == pytest.approx(3)
    assert figure(loud, "bytes_sent.1").number == 3 * figure(quiet, "bytes_sent.1").number


# More ranks.


def test_without_a_network_and_with_equal_work_a_speed_up_is_the_number_of_ranks() -> None:
    free = replace(preset("doubling"), network=Network(latency_s=0, bandwidth_bytes_per_s=1e18))
    free = replace(free, compute=replace(free.compute, optimizer_s=0.0))
    for ranks in (1, 2, 8, 16):
        assert speedup(free, ranks) == pytest.approx(ranks, rel=1e-6)
        assert speedup_same_batch(free, ranks) == pytest.approx(ranks, rel=1e-6)


def test_a_speed_up_is_worked_out_from_the_parts_of_a_step() -> None:
    scenario, ranks = preset("doubling"), 8
    compute, network = scenario.compute, scenario.network
    each = 64  # tokens of a rank
    latency, bandwidth = Fraction(str(network.latency_s)), Fraction(int(network.bandwidth_bytes_per_s))
    scatter = latency + Fraction(each * 16) / bandwidth
    work = each * (Fraction(str(compute.forward_s_per_token)) + Fraction(str(compute.backward_s_per_token)))
    alone = scatter + work + Fraction(str(compute.optimizer_s))
    rounds = 2 * (ranks - 1)
    gradient = Fraction(int(network.gradient_bytes or 0))
    # The count is one number of 8 bytes, in one chunk of the ring.
    together = alone + rounds * (latency + gradient / ranks / bandwidth) + rounds * (latency + 8 / bandwidth)
    assert value("speedup.8", "doubling") == pytest.approx(float(ranks * alone / together), rel=1e-6)


def test_efficiency_falls_with_every_doubling() -> None:
    kept = [value(f"speedup_efficiency.{r}", "doubling") for r in (1, 2, 4, 8, 16, 32, 64)]
    assert kept[0] == 100
    assert kept == sorted(kept, reverse=True)
    assert value("same_batch_efficiency.8", "doubling") == pytest.approx(value("efficiency", "doubling"))


def test_there_is_no_speed_up_where_the_gradient_cannot_be_cut_or_the_batch_not_divided() -> None:
    assert text("speedup.4", "first-screen") != UNDEFINED
    assert text("speedup.8", "first-screen") == UNDEFINED  # four elements
    assert text("speedup_same_batch.2", "first-screen") == UNDEFINED  # given rank by rank
    assert text("speedup_same_batch.2", "accelerate-doc") == UNDEFINED  # dealt by hand


def test_published_efficiencies() -> None:
    found = value("efficiency_of.resnet50_eight.resnet50_one.resnet50_ranks")
    assert found == pytest.approx(100 * 16621 / (8 * 2470))
    assert text("worth.horovod_gpus.horovod_vgg16") == "348"  # 0.68 of 512
    assert value("scaled_rate.goyal_rate.goyal_small.goyal_large") == pytest.approx(3.2)
    assert value("rate_root.goyal_rate.goyal_small.goyal_large") == pytest.approx(0.1 * 32**0.5)


# What a device must hold.

PAPER = {"ddp": 120, "stage1": 31.4, "stage2": 16.6, "stage3": 1.9}  # Rajbhandari et al. 2019, figure 1, GB


@pytest.mark.parametrize("stage", STAGES)
def test_memory_is_that_of_the_zero_paper(stage: str) -> None:
    found = figure(preset("sampler"), f"memory.{stage}.zero_parameters.zero_ranks")
    assert found.number == pytest.approx(PAPER[stage], rel=0.015)
    assert found.unit == "GB"


@law(40)
@given(st.integers(1, 10**10), st.integers(1, 1024))
def test_sharding_saves_more_with_every_stage_and_nothing_on_one_rank(parameters: int, ranks: int) -> None:
    held = [memory(stage, parameters, ranks) for stage in STAGES]
    assert held == sorted(held, reverse=True)
    assert held[0] == 16 * parameters
    assert held[3] * ranks == pytest.approx(held[0])
    assert all(memory(stage, parameters, 1) == held[0] for stage in STAGES)


def test_the_bytes_of_a_parameter_add_up_to_sixteen() -> None:
    parts = sum(value(f"published.mixed_{part}") for part in ("weights", "gradients", "adam"))
    assert value("bytes_per_parameter") == parts == 16


def test_one_bit_adam_sends_4_9_times_less() -> None:
    assert value("onebit_ratio.onebit_warm_up.onebit_bits") == pytest.approx(4.9, rel=0.01)


MISTAKES = [
    ("speedup.0", "figure: must have a whole number from 1 to 64"),
    ("speedup.65", "figure: must have a whole number from 1 to 64"),
    ("speedup.two", "figure: must have a whole number from 1 to 64"),
    ("order.64", "figure: must have an epoch from 0 to 63"),
    ("order.1.0", "figure: must end behind its keys"),
    ("micro_sum.0.1", "figure: must name a micro-batch from 0 to 0"),
    ("memory.stage4.zero_parameters.zero_ranks", "figure: must be one of ddp, stage1, "),
    ("memory.ddp.zero_parameters", "figure: must be written memory.STAGE.PUBLISHED.PUBLISHED"),
    ("hand.4", "figure: must name a rank from 0 to 3"),
]


@pytest.mark.parametrize(("name", "message"), MISTAKES)
def test_a_figure_that_is_not_there_is_named(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        figure(preset("sampler"), name)
    assert str(caught.value).startswith(message)
