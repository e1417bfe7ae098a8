"""Choosing several: what is the same everywhere, what everybody holds, what equals one device, what hangs."""

from __future__ import annotations

from functools import partial
from random import Random

from dpsim.exercises.items import Drawn, Item, chosen
from dpsim.exercises.scenes import link
from dpsim.forms import preset
from dpsim.questions import Option

Pool = tuple[tuple[str, str, str], ...]  # text, what is said about it, misconception

SAME_QUESTIONS = (
    "A synchronous step under DistributedDataParallel has just ended. Which of these are the same on all "
    "{ranks} ranks?",
    "{ranks} ranks have finished a step under DistributedDataParallel. Compare them: what is equal on all of "
    "them?",
)
SAME: Pool = (
    (
        "The parameters",
        "All replicas made the same update to the same parameters, so they are equal again.",
        "",
    ),
    ("The averaged gradient", "The all-reduce leaves the same mean on every rank.", ""),
    (
        "The state of the optimizer",
        "It follows from the same gradients in the same order, so it stays equal.",
        "",
    ),
    ("The learning rate", "Every rank runs the same schedule, for the same number of steps.", ""),
)
NOT_SAME: Pool = (
    ("The samples of the batch", "Each rank has its own part of the batch: that is what is parallel.", "M1"),
    ("The loss of the step", "Each rank has the loss of its own samples, and nobody exchanges losses.", "M9"),
    ("The activations", "They come from the rank's own samples and stay where they are.", ""),
    ("The gradient of the own samples", "That is local: only the mean over all ranks is the same.", ""),
    ("The statistics of plain BatchNorm in the step", "They are taken over the rank's own samples.", "M10"),
    ("The time spent waiting", "Who comes first waits longest; the straggler does not wait.", ""),
)

HOLDS_QUESTIONS = (
    "A model is trained with Adam under DistributedDataParallel on {ranks} GPUs. What must each GPU hold in "
    "memory?",
    "{ranks} GPUs train a model with Adam under DistributedDataParallel. What is in the memory of every one "
    "of them?",
)
HOLDS: Pool = (
    ("All parameters", "Every GPU is a complete replica: no layer is left to another one.", "M13"),
    ("A gradient for every parameter", "Backward makes them all, and the all-reduce brings back as "
    "many.", "M13"),
    ("Both of Adam's moments for every parameter", "Every GPU updates all parameters itself, so it needs all "
    "of the state.", "M19"),
    ("Buckets for the gradients that travel, or gradients that live in them", "What travels has to lie "
    "together; without the view that is a second copy of the gradients.", "M14"),
    ("The activations of its own samples", "Backward needs what forward computed, and each GPU does both for "
    "its own samples.", ""),
)  # fmt: skip
NOT_HELD: Pool = (
    ("Its share of the layers only", "DDP divides the data. To divide layers is model parallelism.", "M13"),
    ("The samples of the whole global batch", "It needs its own part alone.", "M1"),
    ("The activations of the other GPUs' samples", "No activations are exchanged; backward uses one's "
    "own.", ""),
    ("The gradients of every other GPU, one by one", "They are added up on the way, chunk by chunk; nobody "
    "keeps them apart.", ""),
    ("A part of the optimizer state only", "That is ZeRO stage 1. Under plain DDP every GPU has all "
    "of it.", "M19"),
)  # fmt: skip

EQUAL_QUESTIONS = (
    "{ranks} ranks average their gradients. In which cases is that the gradient of one device on the whole "
    "batch, but for rounding?",
    "When do {ranks} ranks that average their gradients do what one device would do with the whole batch, "
    "but for rounding?",
)
EQUAL: Pool = (
    ("Each loss is a mean over samples, and all ranks hold equally many", "Parts of one size may be averaged "
    "by their means; separate losses act as one batch here.", "M18"),
    ("Each rank divides its summed loss by N/R, where N are the valid tokens of all", "DDP divides by R, so "
    "every token ends up divided by N.", "M8"),
    ("The layers normalise each sample by itself (LayerNorm)", "No sample's output depends on others, so it "
    "does not matter which rank they are on.", ""),
    ("One rank is slower than the others", "Waiting changes the time of a step and no number in it.", ""),
)  # fmt: skip
NOT_EQUAL: Pool = (
    ("Each rank takes the mean over its own valid tokens, and the counts differ", "The mean of means is not "
    "the mean: a token counts more where there are few.", "M8"),
    ("The layers use plain BatchNorm", "Each rank normalises by its own samples, not by the whole "
    "batch.", "M10"),
    ("A contrastive loss compares each sample with the others on its rank", "With fewer samples to compare "
    "with it is another loss, which no averaging repairs.", "M18"),
    ("Dropout is on, and each rank draws its own mask", "Other units are left out than on the one device, so "
    "the runs agree on average and not number by number.", "M22"),
    ("Each rank clips its gradient before the average", "Clipping by rank shortens some gradients and not "
    "others.", ""),
)  # fmt: skip

HANGS_QUESTIONS = (
    "Which of these make a job of {ranks} ranks under plain DistributedDataParallel stop with an error, or "
    "wait until a timeout?",
    "{ranks} ranks train under plain DistributedDataParallel. After which of these can the job not go on?",
)
HANGS: Pool = (
    ("On one rank a layer takes no part in the loss", "Its parameters get no gradient there, so their bucket "
    "never becomes full on that rank.", "M11"),
    ("One rank has fewer batches than the others", "When it has run out, the others enter an all-reduce that "
    "it never enters.", "M12"),
    ("Rank 0 alone calls another all-reduce, to log a value", "A collective needs all ranks. Here one of "
    "them enters it alone.", ""),
    ("The process of one rank is killed", "The others need its gradient in the next step, and it never "
    "comes.", ""),
)  # fmt: skip
GOES_ON: Pool = (
    ("One rank is three times as slow", "The others wait in every step, but it does come: slow, not "
    "stuck.", "M17"),
    ("The ranks hold different numbers of valid tokens", "That may give wrong weights, but every rank takes "
    "part in every all-reduce.", "M8"),
    ("The number of samples is no multiple of the number of ranks", "The sampler repeats some, so that all "
    "ranks have equally many batches.", "M5"),
    ("`set_epoch` is never called", "Every epoch is then shuffled alike, which is bad and goes on.", "M6"),
    ("Every micro-batch is synchronised", "That costs an all-reduce each time. All ranks take part "
    "in it.", "M7"),
)  # fmt: skip

SOLUTIONS = {
    "same": (
        "Equal is what follows from the averaged gradient: parameters, optimizer state, the number of steps.",
        "Local is what follows from a rank's own samples: its loss, its activations, its statistics.",
        "That is the whole of data parallelism: the data differ, the model does not.",
    ),
    "holds": (
        "Whatever belongs to a parameter is on every GPU: itself, its gradient, its optimizer state.",
        "Whatever belongs to a sample is only where the sample is: its activations.",
        "Buckets come on top, and to divide the first kind is what ZeRO and model parallelism are for.",
    ),
    "equal": (
        "Averaging gradients is linear, so it equals one device where the loss is a sum over samples.",
        "The weights must be right: equal counts, or sums divided by the count of all.",
        "What mixes samples of one rank, or is not linear, is not repaired by averaging afterwards.",
    ),
    "hangs": (
        "Every all-reduce needs every rank, and every bucket needs all of its gradients.",
        "Whatever keeps one rank from entering stops all of them.",
        "What only makes a rank late, or its numbers wrong, lets the job go on.",
    ),
}


def _options(draw: Random, right: Pool, wrong: Pool) -> tuple[list[Option], list[Option]]:
    """Five or six options, at least two of them right and two wrong."""
    rights = draw.randint(2, min(4, len(right)))
    wrongs = draw.choice((5, 6)) - rights
    pools = ((right, max(2, rights), True), (wrong, max(2, wrongs), False))
    made = [
        [Option(text, said, is_right, m) for text, said, m in draw.sample(pool, n)]
        for pool, n, is_right in pools
    ]
    return made[0], made[1]


def _several(
    name: str, questions: tuple[str, ...], right: Pool, wrong: Pool, link_to: str, draw: Random
) -> Drawn:
    ranks = draw.choice((2, 4, 8, 16, 32))
    rights, wrongs = _options(draw, right, wrong)
    return Drawn(
        chosen(
            draw,
            "choose-several",
            tuple(question.format(ranks=ranks) for question in questions),
            rights,
            wrongs,
            solution=SOLUTIONS[name],
            link=link_to,
            feedback=" ".join(option.feedback for option in rights),
        )
    )


def _item(
    name: str, title: str, topic: str, questions: tuple[str, ...], right: Pool, wrong: Pool, link_to: str = ""
) -> Item:
    draw = partial(_several, name, questions, right, wrong, link_to)
    return Item(f"x-several-{name}", title, topic, ("choose-several",), draw)


_FIRST = link(preset("first-screen"), "optimizer")

ITEMS = (
    _item("same", "The same on all ranks", "step", SAME_QUESTIONS, SAME, NOT_SAME, _FIRST),
    _item("holds", "What each GPU holds", "memory", HOLDS_QUESTIONS, HOLDS, NOT_HELD),
    _item("equal", "Equal to one device", "gradients", EQUAL_QUESTIONS, EQUAL, NOT_EQUAL, _FIRST),
    _item("hangs", "What stops a job", "barrier", HANGS_QUESTIONS, HANGS, GOES_ON),
)
