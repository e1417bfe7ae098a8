"""Tokens: what one counts where ranks hold unequally many, and what to divide by."""

from __future__ import annotations

from random import Random

from dpsim.exercises.items import NUMBER, Drawn, Item, chosen, near, numeric
from dpsim.exercises.scenes import given, link
from dpsim.questions import Option, Slip
from dpsim.wording import listed, number


def _t1(draw: Random) -> Drawn:
    n, m = draw.sample(range(2, 31), 2)
    a, b = draw.randint(5, 50) / 10, draw.randint(5, 50) / 10
    answer = (n * a + m * b) / (n + m)
    sums = [[[round(n * a, 6)]], [[round(m * b, 6)]]]
    scene = given("x-T1", f"Losses over {n} and {m} tokens", sums, [n, m], parameters=(1.0,))
    return Drawn(
        numeric(
            f"Rank 0 has {n} valid tokens with a mean loss of {number(a)}, rank 1 has {m} with {number(b)}. "
            "What is the mean loss of all valid tokens?",
            answer,
            "",
            (
                Slip(
                    (a + b) / 2,
                    f"That is the mean of the two means. It counts the rank with {min(n, m)} tokens as much "
                    f"as the one with {max(n, m)}.",
                    "M8",
                ),
                Slip(
                    a + b,
                    f"{number(a)} and {number(b)} are added, but each is a mean already. A mean of both has "
                    "to lie between them.",
                ),
                Slip(
                    (m * a + n * b) / (n + m),
                    f"The weights are swapped: {number(a)} is the mean of {n} tokens, so it goes with {n}, "
                    f"not with {m}.",
                ),
            ),
            tolerance=0.005,
            feedback=f"Every one of the {n + m} tokens counts the same, wherever it is.",
            other="Turn each mean back into a sum, add the sums, and divide by all valid tokens.",
            solution=(
                rf"Loss sums: ${n} \cdot {number(a)} = {number(n * a)}$ and ${m} \cdot {number(b)} = "
                f"{number(m * b)}$.",
                f"Counts: ${n} + {m} = {n + m}$ valid tokens.",
                rf"$\frac{{n_0 L_0 + n_1 L_1}}{{n_0 + n_1}} = {number(n * a + m * b)}/{n + m} = "
                f"{number(answer)}$.",
            ),
            link=link(scene, "forward"),
        )
    )


def _t2(draw: Random) -> Drawn:
    n, m = draw.sample(range(2, 41), 2)
    scene = given(
        "x-T2", f"The naive mean over {n} and {m} tokens", [[[2 * n, n]], [[-m, m]]], [n, m],
        "mean_of_rank_means",
    )  # fmt: skip
    return Drawn(
        numeric(
            f"Rank 0 has {n} valid tokens and rank 1 has {m}. Each takes its own mean, and the two means are "
            "averaged. How many times as much does a token on rank 0 count as a token on rank 1?",
            m / n,
            "times",
            (
                Slip(
                    1.0,
                    f"They would count the same if the ranks held equally many. Here {n} tokens share one "
                    f"half of the result, and {m} the other.",
                    "M8",
                ),
                Slip(
                    n / m,
                    f"That is the inverse. The {min(n, m)} tokens have the same half of the result to share "
                    f"as the {max(n, m)}, so each of the fewer ones counts more.",
                ),
                Slip(
                    m / (n + m),
                    f"{m} of {n + m} is rank 1's share of all tokens. Asked for is one token against "
                    f"another: {number(0.5 / n)} of the result against {number(0.5 / m)}.",
                ),
            ),
            tolerance=max(0.005, near(m / n)),
            feedback=f"A token on rank 0 is one part in {n} of its half, one on rank 1 one part in {m}.",
            other="Each rank's mean makes up one half. Which part of that half is a single token?",
            solution=(
                rf"A token on rank 0 has the weight $\frac{{1}}{{2}} \cdot \frac{{1}}{{{n}}}$, one on rank 1 "
                rf"$\frac{{1}}{{2}} \cdot \frac{{1}}{{{m}}}$.",
                f"The quotient is $n_1/n_0 = {m}/{n} = {number(m / n)}$.",
                "In the mean over all tokens it would be exactly one.",
            ),
            link=link(scene, "optimizer"),
        )
    )


def _t3(draw: Random) -> Drawn:
    ranks = draw.randint(2, 6)
    counts = [draw.randint(2, 40) for _ in range(ranks)]
    total = sum(counts)
    answer = total / ranks
    scene = given("x-T3", f"{ranks} ranks, {total} valid tokens", [[[n, -n]] for n in counts], counts)
    return Drawn(
        numeric(
            f"The ranks hold {listed(counts)} valid tokens. Each has the summed loss of its own; DDP "
            f"averages the gradients over the {ranks} ranks. By what must rank 0 divide its summed loss, so "
            "that all replicas get the mean over all valid tokens?",
            answer,
            "",
            (
                Slip(
                    total,
                    f"Divided by all {total} tokens the gradients would add up to the mean, but DDP does not "
                    f"only add: it divides by {ranks} once more, and the result is {ranks} times too small.",
                    "M3",
                ),
                Slip(
                    counts[0],
                    f"{counts[0]} is the count of rank 0. That makes its own mean, and what DDP forms is the "
                    "mean of the means.",
                    "M8",
                ),
                Slip(
                    ranks * total,
                    f"The factor {ranks} stands on the wrong side. DDP divides by {ranks} later, so the rank "
                    f"has to divide by {ranks} times less than {total}.",
                    "M3",
                ),
            ),
            tolerance=max(0.01, min(0.05, near(answer))),
            feedback=f"Divided by that and then by {ranks}, the losses are divided by {total} in all.",
            other=f"All in all every loss must be divided by {total}. Which part of it does DDP do?",
            solution=(
                f"The mean over all tokens needs $\\sum_r L_r / N$ with $N = {total}$.",
                f"DDP forms $\\frac{{1}}{{{ranks}}} \\sum_r L_r / d$, whatever $d$ the ranks divided by.",
                f"Both are equal for $d = N/R = {total}/{ranks} = {number(answer)}$, on every rank.",
            ),
            link=link(scene, "count"),
        )
    )


def _n1(draw: Random) -> Drawn:
    ranks = draw.randint(3, 5)
    counts = [draw.randint(2, 9) for _ in range(ranks)]
    means = [draw.randint(-6, 9) for _ in range(ranks)]
    empty = draw.randrange(ranks)
    counts[empty] = means[empty] = 0
    sums = [n * g for n, g in zip(counts, means, strict=True)]
    total = sum(counts)
    others = sum(means) / (ranks - 1)
    scene = given(
        "x-N1", f"Rank {empty} has no valid token", [[[s]] for s in sums], counts, "mean_of_rank_means",
        lengths=[max(n, 4) for n in counts],
    )  # fmt: skip
    asked = chosen(
        draw,
        "choose-one",
        (
            f"The ranks hold {listed(counts)} valid tokens, and their gradient sums for one weight are "
            f"{listed([number(s) for s in sums])}. Each rank divides its sum by its own count, and the "
            "results are averaged. What comes out?",
            f"For one weight the gradient sums of the ranks are {listed([number(s) for s in sums])}, over "
            f"{listed(counts)} valid tokens. A script takes each rank's own mean and averages these. What "
            "does it get?",
        ),
        (
            Option(
                "Nothing: it is undefined",
                f"Rank {empty} divides zero by zero. In a run that is a NaN, and the all-reduce adds it to "
                "everybody's gradient.",
                right=True,
            ),
        ),
        (
            Option(
                number(sum(sums) / total),
                f"That is {number(sum(sums))} over {total}, the token-weighted mean. It is what one wants, "
                "and an empty rank does it no harm, but this script never adds up sums and counts.",
                misconception="M8",
            ),
            Option(
                number(others),
                f"That is the mean over the {ranks - 1} ranks that have tokens. Nobody leaves rank {empty} "
                "out by itself: it takes part in the all-reduce with what it has.",
                misconception="M8",
            ),
            Option(
                number(sum(means) / ranks),
                f"That counts rank {empty} as a mean of zero. Its sum is zero, but its count is too, and "
                "zero divided by zero is no number.",
            ),
        ),
        solution=(
            f"Rank {empty} has the sum 0 and the count 0, so its mean $S/n = 0/0$ is undefined.",
            "An average with an undefined term is undefined, on all replicas.",
            f"Sums and counts have no such gap: ${number(sum(sums))}/{total} = {number(sum(sums) / total)}$.",
        ),
        link=link(scene, "optimizer"),
    )
    return Drawn(asked)


ITEMS = (
    Item("x-T1", "The mean loss of all tokens", "tokens", NUMBER, _t1),
    Item("x-T2", "What a token counts in a mean of means", "tokens", NUMBER, _t2),
    Item("x-T3", "What to divide the summed loss by", "tokens", NUMBER, _t3),
    Item("x-N1", "A rank without a valid token", "tokens", ("choose-one",), _n1),
)
