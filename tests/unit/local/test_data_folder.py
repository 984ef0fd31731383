"""The data folder: one user at a time, secrets for their owner alone."""

import pathlib

import pytest

from taskexecutor_local.data_folder import DataFolder, FolderInUseError


def test_a_second_run_on_the_same_folder_is_refused_and_told_about_the_first(tmp_path: pathlib.Path) -> None:
    with DataFolder(tmp_path) as first:
        first.write_run({"pid": 4242, "url": "http://127.0.0.1:1"})
        with pytest.raises(FolderInUseError, match=r"already runs .*process 4242, http://127\.0\.0\.1:1"):
            DataFolder(tmp_path).__enter__()


def test_the_folder_is_free_again_after_the_run(tmp_path: pathlib.Path) -> None:
    with DataFolder(tmp_path):
        pass
    with DataFolder(tmp_path):
        pass


def test_a_secret_is_made_once_and_kept_for_its_owner_alone(tmp_path: pathlib.Path) -> None:
    with DataFolder(tmp_path) as folder:
        assert folder.kept("api_key", lambda: "first") == "first"
        assert folder.kept("api_key", lambda: "second") == "first"
    assert (tmp_path / "api_key").stat().st_mode & 0o777 == 0o600


def test_run_facts_are_for_the_owner_alone(tmp_path: pathlib.Path) -> None:
    with DataFolder(tmp_path) as folder:
        folder.write_run({"database_url": "postgresql://u:password@h/d"})
        assert folder.run_file.stat().st_mode & 0o777 == 0o600


def test_a_damaged_run_file_counts_as_none(tmp_path: pathlib.Path) -> None:
    (tmp_path / "run.json").write_text('{"pid": 1')
    assert DataFolder(tmp_path).read_run() == {}
