"""Putting the parts of a step in order."""

from __future__ import annotations

from random import Random

from dpsim.exercises.items import Drawn, Item
from dpsim.exercises.scenes import link, samples
from dpsim.forms import preset
from dpsim.questions import Asked, Option


def _step(draw: Random) -> Drawn:
    ranks, micro = draw.choice((2, 3, 4, 6, 8)), draw.choice((1, 2, 3, 4))
    own = "its first micro-batch" if micro > 1 else "its own samples"
    dealt = Option(
        "The global batch is dealt to the ranks",
        "A rank can compute nothing before it has its own part of the batch, so dealing comes first.",
    )
    forward = Option(
        f"Each rank computes the loss of {own}",
        "Forward needs the samples and the parameters, and both are there now. Backward needs its result.",
    )
    backward = Option(
        f"Each rank computes the gradient of {own}",
        "Backward follows forward, on each rank alone: only what it makes can be added to or exchanged.",
    )
    accumulated = Option(
        "Each rank adds the gradients of its other micro-batches",
        "One synchronisation is for all micro-batches together, so their gradients are added up before it.",
    )
    reduced = Option(
        "The gradients of all ranks are added up",
        "An all-reduce needs the gradients, and all ranks enter it once they have theirs.",
    )
    passed = Option(
        "Every rank holds the same gradient, and none has gone on before",
        "The barrier lies behind the all-reduce: it is passed once the last rank has come and the sum is "
        "whole.",
    )
    updated = Option(
        "Each optimizer updates its own copy of the parameters",
        "The update comes last, once every rank has the same gradient: only then do the replicas stay equal.",
    )
    left_out = draw.choice((None, dealt, passed))
    every = (dealt, forward, backward, *([accumulated] if micro > 1 else []), reduced, passed, updated)
    options = [option for option in every if option is not left_out]
    said = f", each with {micro} micro-batches and one synchronisation" if micro > 1 else ""
    scene = samples("x-order-step", f"A step of {ranks} ranks", ranks, 4, micro)
    return Drawn(
        Asked(
            "order",
            f"One synchronous step of {ranks} ranks{said}: put its parts in order.",
            tuple(options),
            feedback="Each part needs what the one before it has made, so there is no other order.",
            solution="\n\n".join(
                (
                    "First come the data, then forward and backward, on each rank alone.",
                    "Then the gradients meet, and every rank waits until their sum is complete.",
                    "The update comes last, and is the same on all ranks because the gradient is.",
                )
            ),
            link=link(scene, "start"),
        )
    )


def _ddp(draw: Random) -> Drawn:
    layers = draw.choice((12, 18, 24, 32, 48))
    first, last = draw.choice((("first layers", "last layers"), ("input side", "output side")))
    options = [
        Option(
            "Forward ends with the loss",
            "Backward starts from the loss, so forward has to end before any gradient is there.",
        ),
        Option(
            f"Backward has the gradients of the {last}",
            "Backward goes from the loss towards the input: what is nearest to the loss is ready first.",
        ),
        Option(
            "Their bucket is full, and its all-reduce starts",
            "A bucket travels as soon as it is complete on every rank; it does not wait for the others.",
        ),
        Option(
            f"Backward goes on and reaches the {first}, while a bucket is under way",
            "Backward does not stop for a bucket that travels. This side by side is the overlap.",
        ),
        Option(
            "The bucket that became full last starts its all-reduce",
            "The last bucket is complete only when backward ends, so nothing is left to hide it behind.",
        ),
        Option(
            "All buckets are back, and backward() returns",
            "DDP waits for every bucket before it hands over the gradients.",
        ),
        Option(
            "The optimizer takes its step",
            "The update needs the reduced gradient of every parameter, so it comes after all buckets.",
        ),
    ]
    gone = draw.choice(((), (0,), (5,), (0, 5)))
    return Drawn(
        Asked(
            "order",
            f"A model of {layers} layers is trained under DistributedDataParallel, with several buckets. Put "
            "these moments of one step in order.",
            tuple(option for i, option in enumerate(options) if i not in gone),
            feedback="Last layers first, bucket by bucket, and the update when all of them are back.",
            solution="\n\n".join(
                (
                    f"Backward starts at the loss, so the {last} of the {layers} have their gradients first.",
                    "Each bucket is reduced as soon as it is full, while backward works on.",
                    f"The {first} come last; their bucket is exposed, and the update waits for it.",
                )
            ),
            link=link(preset("overlap"), "s1.backward.b0"),
        )
    )


ITEMS = (
    Item("x-order-step", "The parts of a step", "step", ("order",), _step),
    Item("x-order-ddp", "A step with buckets", "overlap", ("order",), _ddp),
)
