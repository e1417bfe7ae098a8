"""Overlap and buckets: what backward hides, and in how many pieces the gradient travels."""

from __future__ import annotations

from random import Random

from dpsim.exercises.items import NUMBER, WHOLE, Drawn, Item, near, numeric, series
from dpsim.questions import Slip
from dpsim.wording import number

CAP_MIB = 25
CAP_PARAMETERS = CAP_MIB * 2**20 // 4  # fp32 parameters in a full bucket


def _o1(draw: Random) -> Drawn:
    forward, backward = draw.randrange(20, 90, 2), draw.randrange(40, 180, 2)
    reduce_ms = draw.randrange(20, 260, 2)
    answer = forward + max(backward, reduce_ms)
    hidden = reduce_ms <= backward
    slips = [
        Slip(
            forward + backward + reduce_ms,
            f"That lets the all-reduce start only after backward. Overlapped, its {reduce_ms} ms run at the "
            f"same time as the {backward} ms of backward.",
        ),
        Slip(
            backward + max(forward, reduce_ms),
            "That overlaps it with forward. The gradients only exist during backward, so only backward can "
            "hide their travel.",
        ),
    ]
    if not hidden:
        slips.append(
            Slip(
                forward + backward,
                f"Backward can hide {backward} ms of the all-reduce, not all {reduce_ms} ms of it. What is "
                "longer stays exposed.",
                "M17",
            )
        )
    left = (
        f"Backward is the longer of the two and hides all {reduce_ms} ms."
        if hidden
        else f"{reduce_ms - backward} ms of the all-reduce stay exposed behind backward."
    )
    return Drawn(
        numeric(
            f"Forward takes {forward} ms, backward {backward} ms, the all-reduce {reduce_ms} ms. It overlaps "
            "backward perfectly: the first gradients start to travel at once. How many milliseconds does a "
            "step take, without the optimizer?",
            answer,
            "ms",
            slips,
            tolerance=max(0.5, near(answer)),
            feedback=left,
            other="What can run at the same time as the all-reduce? Of two things side by side the longer "
            "one counts.",
            solution=(
                f"Forward comes first, alone: {forward} ms.",
                f"Backward and all-reduce run side by side; the longer one counts: $\\max({backward}, "
                f"{reduce_ms}) = {max(backward, reduce_ms)}$ ms.",
                rf"$f + \max(b, a) = {forward} + {max(backward, reduce_ms)} = {answer}$ ms. Really a little "
                "more: the last bucket can only travel once backward has ended.",
            ),
        ),
        series(
            f"Step time, {forward} ms forward and {backward} ms backward, overlapped perfectly",
            "all-reduce, ms",
            "step, ms",
            range(0, 281, 20),
            lambda a: forward + max(backward, a),
            reduce_ms,
        ),
    )


def _o2(draw: Random) -> Drawn:
    fill, count = draw.choice((8, 10, 16, 20, 25, 32)), draw.randint(30, 300)
    each = CAP_PARAMETERS // fill  # fill of these tensors make a full bucket, exactly
    answer = -(-count // fill)
    return Drawn(
        numeric(
            f"A model has {count} equal tensors of {number(each)} fp32 parameters each. "
            f"DistributedDataParallel packs them into buckets of {CAP_MIB} MiB; leave its smaller first "
            "bucket out of account. How many buckets are there?",
            answer,
            "buckets",
            (
                Slip(
                    count,
                    f"That is an all-reduce for every tensor, {count} times its latency. Tensors are "
                    f"collected until a bucket has {CAP_MIB} MiB.",
                    "M20",
                ),
                Slip(
                    1,
                    "One bucket would be full only when backward ends, and nothing of it could overlap.",
                    "M20",
                ),
                Slip(
                    -(-count * each // (4 * CAP_PARAMETERS)),
                    "A parameter in fp32 has four bytes. That divides the parameters, not their bytes, by "
                    "the size of a bucket.",
                ),
            ),
            tolerance=WHOLE,
            feedback=f"{fill} of the tensors fill a bucket of {CAP_MIB} MiB, and the last one may stay "
            "smaller.",
            other=f"How many bytes does a tensor have, and how many of them fill {CAP_MIB} MiB?",
            solution=(
                rf"A tensor has ${number(each)} \cdot 4 = {4 * each}$ bytes; ${CAP_MIB}$ MiB are "
                rf"${CAP_MIB} \cdot 2^{{20}} = {CAP_MIB * 2**20}$ bytes.",
                f"So ${fill}$ tensors fill a bucket.",
                rf"$\lceil {count}/{fill} \rceil = {answer}$ buckets.",
            ),
        ),
        series(
            f"Buckets of {CAP_MIB} MiB for tensors of {number(each)} fp32 parameters",
            "tensors",
            "buckets",
            range(fill, 301, fill),
            lambda n: -(-int(n) // fill),
            count,
        ),
    )


ITEMS = (
    Item("x-O1", "What backward hides", "overlap", NUMBER, _o1),
    Item("x-O2", "How many buckets", "overlap", NUMBER, _o2),
)
