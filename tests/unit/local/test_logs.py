"""What becomes of the children's logs."""

import json
import pathlib

from taskexecutor_local import logs


def tail(path: pathlib.Path) -> logs.Tail:
    return logs.Tail("api", path, logs.loud_service_line)


def entry(level: str, event: str) -> str:
    return json.dumps({"level": level, "event": event}) + "\n"


def test_logs_of_the_last_three_runs_are_kept(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "api.log"
    for run in range(6):
        logs.rotate(path)
        path.write_text(str(run))
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {
        "api.log": "5",
        "api.log.1": "4",
        "api.log.2": "3",
        "api.log.3": "2",
    }


def test_only_warnings_and_worse_are_shown(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "api.log"
    path.write_text(entry("info", "fine") + entry("warning", "hm") + entry("error", "no"))
    assert tail(path).new_lines() == ["warning hm", "error no"]


def test_what_is_not_json_is_shown(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "api.log"
    path.write_text("MemoryError\n")
    assert tail(path).new_lines() == ["MemoryError"]


def test_each_line_is_shown_once_and_whole(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "api.log"
    reader = tail(path)
    path.write_text("one\ntw")
    assert reader.new_lines() == ["one"]
    path.write_text("one\ntwo\n")
    assert reader.new_lines() == ["two"]
    assert reader.new_lines() == []


def test_a_burst_is_cut_short_and_says_so(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "api.log"
    path.write_text("again\n" * 100)
    assert tail(path).new_lines() == [*["again"] * 5, f"... and 95 more in {path}"]


def test_refused_statements_of_postgres_are_not_shown_but_its_end_is() -> None:
    assert logs.loud_postgres_line("12:00 ERROR:  duplicate key") is None
    assert logs.loud_postgres_line("12:00 FATAL:  out of memory")
