"""What a certificate says: a credential in the Open Badges 3.0 form (W3C Verifiable Credentials 2.0)."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from dpsim.checks import InputError, number, whole
from dpsim.credential.encoding import LAST_S, time
from dpsim.credential.jws import signed
from dpsim.credential.operator import Operator
from dpsim.score import PASS, needed

CONTEXTS = [
    "https://www.w3.org/ns/credentials/v2",
    "https://purl.imsglobal.org/spec/ob/v3p0/context-3.0.3.json",
]
TYPES = ["VerifiableCredential", "OpenBadgeCredential"]
TITLE = "Data-parallel training: the test"
DESCRIPTION = (
    "Can compute and explain what one step of synchronous data-parallel training does: dealing the batch, "
    "gradient sums and token counts, the all-reduce, the token-weighted mean, the optimizer step, its time."
)
CRITERIA = (
    "One question with numbers of its own for every objective of the lessons, one try at each, and at least "
    f"{100 * PASS} % of them right. The answers were checked by the issuer's server. "
    "Nobody watched the learner."
)
ENTRIES = 131_072  # of the status list
LONGEST_HOLDER = 100
_JOINERS = {0x200C: None, 0x200D: None}  # invisible, but some scripts cannot be written without them


@dataclass(frozen=True)
class Award:
    """A test that was passed: questions right, of how many, and when, in seconds since 1970."""

    right: int
    of: int
    at: float

    def __post_init__(self) -> None:
        whole("score.of", self.of, 1, 1000)
        whole("score.right", self.right, 0, self.of)
        number("score.at", self.at, 0, LAST_S)
        if self.right < needed(self.of):
            raise InputError("score.right", f"must be at least {needed(self.of)} of {self.of}", self.right)


def holder(name: str) -> str:
    """A name as it goes into a certificate: one line of at most 100 characters in any script, composed (NFC),
    single spaces. The empty name is a certificate without one; an e-mail address is no name."""
    if not isinstance(name, str):
        raise InputError("name", "must be text", name)
    found = " ".join(unicodedata.normalize("NFC", name).split())
    written = found.translate(_JOINERS)
    if len(found) > LONGEST_HOLDER or "@" in found or not written.isprintable():
        rule = (
            f"must be a name of at most {LONGEST_HOLDER} characters that can be seen, and none of them an @"
        )
        raise InputError("name", rule, found)
    return found


def credential(
    operator: Operator, score: Award, name: str, id: UUID, index: int, at: float
) -> dict[str, Any]:
    """The credential `id`, issued at `at` seconds since 1970, whose revocation is told by entry `index` of
    the status list. The same arguments give the same credential, so that one that was lost can be issued
    again. The subject's identifier belongs to this certificate alone: it tells nothing of the learner."""
    whole("index", index, 0, ENTRIES - 1)
    number("at", at, score.at, LAST_S)
    test, result, named = operator.links.test, f"{operator.links.test}#right-of-{score.of}", holder(name)
    identity = {"type": "IdentityObject", "hashed": False, "identityHash": named, "identityType": "name"}
    return {
        "@context": CONTEXTS,
        "id": id.urn,
        "type": TYPES,
        "name": TITLE,
        "issuer": {
            "id": operator.did,
            "type": ["Profile"],
            "name": operator.name,
            "url": operator.base_url,
        },
        "validFrom": time(at),
        "awardedDate": time(score.at),
        "credentialSubject": {
            "id": uuid5(id, "subject").urn,
            "type": ["AchievementSubject"],
            **({"identifier": [identity]} if named else {}),
            "achievement": {
                "id": f"{test}#passed",
                "type": ["Achievement"],
                "name": TITLE,
                "description": DESCRIPTION,
                "criteria": {"narrative": CRITERIA},
                "achievementType": "Assessment",
                "resultDescription": [
                    {
                        "id": result,
                        "type": ["ResultDescription"],
                        "name": "Questions answered right",
                        "resultType": "RawScore",
                        "valueMin": "0",
                        "valueMax": str(score.of),
                        "requiredValue": str(needed(score.of)),
                    }
                ],
            },
            "result": [{"type": ["Result"], "resultDescription": result, "value": str(score.right)}],
        },
        "credentialStatus": {
            "id": f"{operator.links.status}#{index}",
            "type": "BitstringStatusListEntry",
            "statusPurpose": "revocation",
            "statusListIndex": str(index),
            "statusListCredential": operator.links.status,
        },
    }


def sign(operator: Operator, credential: dict[str, Any]) -> str:
    """The credential as a signed token: what a certificate's .jwt file holds."""
    return signed(operator, credential)
