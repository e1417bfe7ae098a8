"""Issuing: only for a test that was passed, one certificate that stands for each, and revoked for good."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from certificates import operator, outcomes
from passing import KEY, WHO, sat

from dpsim.checks import InputError
from dpsim.credential.status import status_list
from dpsim.credential.verify import Verification, verify
from dpsim.issuing import MOST, issue, issued
from dpsim.recovery import learner_id
from dpsim.store import Store


@pytest.fixture
def kept(tmp_path: Path) -> Store:
    return Store(f"sqlite:///{tmp_path / 'p.sqlite3'}")


def verified(kept: Store, jwt: str) -> Verification:
    """By the issuer's keys and its status list as it is now."""
    listed = status_list(operator(), kept.revoked_indices(), time.time())
    return verify(jwt, operator().did_document(), listed, time.time())


def test_a_certificate_says_what_the_test_came_to_and_is_valid_in_every_check(kept: Store) -> None:
    test = sat(kept, 31)
    made = issue(operator(), kept, WHO, test, " Ada  Lovelace ")
    found = verified(kept, made.jwt)
    assert set(outcomes(found).values()) == {"passed"}
    assert found.facts is not None
    said = found.facts
    assert (str(said.id), said.name, said.right, said.of, said.required) == (
        made.id,
        "Ada Lovelace",
        31,
        36,
        29,
    )
    assert said.awarded == int(test.ended or 0)
    assert said.index == made.index
    assert issued(kept, WHO, test) == made


def test_nothing_in_it_tells_which_learner_it_is(kept: Store) -> None:
    made = issue(operator(), kept, WHO, sat(kept, 31), "")
    found = verified(kept, made.jwt)
    assert WHO[:12] not in str(found.credential)
    assert KEY not in str(found.credential)


@pytest.mark.parametrize("right", [0, 28])
def test_a_test_that_was_not_passed_gets_none(kept: Store, right: int) -> None:
    test = sat(kept, right)
    with pytest.raises(InputError, match="must be for a test that was passed"):
        issue(operator(), kept, WHO, test, "")
    assert kept.certificates(WHO) == []


def test_29_of_36_are_enough(kept: Store) -> None:
    issue(operator(), kept, WHO, sat(kept, 29), "")


def test_an_open_test_gets_none(kept: Store) -> None:
    open_test = kept.begin_test(WHO, "s", "f")
    with pytest.raises(InputError, match="must be for a test that was passed"):
        issue(operator(), kept, WHO, open_test, "")


def test_the_test_of_somebody_else_gets_none(kept: Store) -> None:
    test = sat(kept, 36)
    with pytest.raises(InputError, match="must be one that you have begun"):
        issue(operator(), kept, learner_id("f" * 32), test, "")


def test_issued_again_only_the_new_one_stands(kept: Store) -> None:
    test = sat(kept, 31)
    first = issue(operator(), kept, WHO, test, "Ada")
    second = issue(operator(), kept, WHO, test, "Ada Lovelace")
    assert issued(kept, WHO, test) == second
    assert (first.id, first.index) != (second.id, second.index)
    assert outcomes(verified(kept, first.jwt))["revocation"] == "failed"
    assert outcomes(verified(kept, second.jwt))["revocation"] == "passed"


def test_a_name_that_is_none_takes_no_place_and_revokes_nothing(kept: Store) -> None:
    test = sat(kept, 31)
    first = issue(operator(), kept, WHO, test, "Ada")
    with pytest.raises(InputError, match="name"):
        issue(operator(), kept, WHO, test, "ada@example.org")
    assert issued(kept, WHO, test) == first


def test_so_many_for_one_test_and_no_more(kept: Store) -> None:
    test = sat(kept, 31)
    made = [issue(operator(), kept, WHO, test, "") for _ in range(MOST)]
    with pytest.raises(InputError, match=f"{MOST}"):
        issue(operator(), kept, WHO, test, "")
    assert issued(kept, WHO, test) == made[-1]


def test_what_the_operator_revoked_is_not_issued_again_but_another_test_may_be_taken(kept: Store) -> None:
    test = sat(kept, 31)
    made = issue(operator(), kept, WHO, test, "Ada")
    kept.revoke(made.id)
    with pytest.raises(InputError, match="must not have been revoked"):
        issue(operator(), kept, WHO, test, "Ada")
    assert kept.certificates(WHO)[-1].id == made.id
    other = issue(operator(), kept, WHO, sat(kept, 32), "Ada")
    assert outcomes(verified(kept, other.jwt))["revocation"] == "passed"


def test_after_the_learner_was_deleted_the_id_is_unknown_and_the_file_still_verifies(kept: Store) -> None:
    made = issue(operator(), kept, WHO, sat(kept, 31), "Ada")
    kept.delete(WHO)
    assert kept.certificate(made.id) is None
    assert set(outcomes(verified(kept, made.jwt)).values()) == {"passed"}


def test_revoked_it_stays_so_after_the_learner_was_deleted(kept: Store) -> None:
    made = issue(operator(), kept, WHO, sat(kept, 31), "Ada")
    kept.revoke(made.id)
    kept.delete(WHO)
    assert outcomes(verified(kept, made.jwt))["revocation"] == "failed"
