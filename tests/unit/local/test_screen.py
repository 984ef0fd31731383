"""Plain lines, and what happens when nobody reads them."""

from taskexecutor_local.screen import PlainScreen


def test_a_reader_that_went_away_does_not_end_the_system() -> None:
    calls = []

    def write(text: str, flush: bool) -> None:
        calls.append(text)
        raise BrokenPipeError

    screen = PlainScreen(write)
    screen.say("one")
    screen.say("two")
    assert calls == ["one"]
