"""What is left of secrets in texts: nothing."""

from __future__ import annotations

import pytest

from taskexecutor_common.masking import MASK, Mask, _forms

SECRET = "sk-live/4f9a+8b7c"


@pytest.mark.parametrize("form", sorted(_forms(SECRET)))
def test_wherever_a_text_is_cut_nothing_of_a_secret_is_left(form: str) -> None:
    mask = Mask([SECRET])
    for length in range(1, len(form)):
        assert mask.text("Bearer: " + form[:length], is_cut=True).removesuffix(MASK) == "Bearer: "
    assert mask.text("Bearer: " + form, is_cut=True) == "Bearer: ***"


def test_a_text_that_was_not_cut_keeps_its_end() -> None:
    assert Mask([SECRET]).text("the prefix is sk-live") == "the prefix is sk-live"


def test_of_two_secrets_that_may_have_begun_the_longer_beginning_goes() -> None:
    assert Mask(["abcabcX", "bcaY"]).text("... abcabc", is_cut=True) == "... "
