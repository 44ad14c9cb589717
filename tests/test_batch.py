"""Many sessions: in order, each by itself, in several processes, and never twice."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import attrs
import pytest

import chat_compaction as cc
from chat_compaction._batch import SessionResult, compact_sessions
from chat_compaction._batch._canonical import canonical
from chat_compaction._batch._find import Task
from chat_compaction._batch._pool import _answer, _Pool, _Process, _Session
from chat_compaction._batch._record import FOLDER, Records, digest, report_of
from chat_compaction.testing import characters_counter
from tests._cli import session, write
from tests._shared import ROOT, load_session, recorded_sessions

STRATEGY = cc.TokenBudgetStrategy(300, target_tokens=200)
COUNTER = cc.EstimateCounter()
_LOADS = "CHAT_COMPACTION_TEST_LOADS"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sessions at several depths: one that need not shrink, three that do, and one that is none."""
    folder = tmp_path / "sessions"
    (folder / "b" / "deep").mkdir(parents=True)
    write(folder / "z.json", session(1))
    write(folder / "b" / "one.json", session())
    write(folder / "b" / "deep" / "two.json", {"model": "m", "messages": session(8)}, indent=2)
    (folder / "b" / "lines.jsonl").write_text("".join(f"{json.dumps(message)}\n" for message in session(7)))
    (folder / "a.json").write_text('[{"role": "user"},\n{"role"')
    (folder / "notes.txt").write_text("no session")
    return folder


def done(sessions: Any, **settings: Any) -> list[SessionResult]:
    return list(compact_sessions(sessions, settings.pop("strategy", STRATEGY), **{"counter": COUNTER, **settings}))


def files(folder: Path) -> dict[str, bytes]:
    """Everything below a folder but our own records."""
    found = (path for path in folder.rglob("*") if path.is_file() and FOLDER not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@attrs.frozen(kw_only=True)
class Picky(cc.CompactionStrategy):
    """Does to some sessions what their first message says."""

    def compact_core(self, index: cc.MessageIndex) -> bool:
        word = index.included_messages()[0]["content"]
        if word == "die":
            os._exit(9)
        if word == "fail":
            raise ZeroDivisionError("on\npurpose")
        return self.evict(index, self.candidates(index), "old")


PICKY = Picky(trigger=cc.messages > 4, target=cc.messages <= 3, min_preserved_groups=1)


@attrs.frozen
class Loaded:
    """A counter that takes a note whenever it is loaded in a process."""

    name: str = "loaded"
    exact: bool = True

    def __reduce__(self) -> Any:
        return _loaded, ()

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


def _loaded() -> Loaded:
    with Path(os.environ[_LOADS]).open("a") as notes:
        notes.write(f"{os.getpid()}\n")
    return Loaded()


# -- what comes of each ------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_session_by_itself_in_order(folder: Path, tmp_path: Path, jobs: int) -> None:
    """Sorted by path, each with the report of a reducer or with its error; one that fails stops no other."""
    output = tmp_path / "out"
    results = done(folder, output=output, jobs=jobs)
    assert [result.path.relative_to(folder).as_posix() for result in results] == [
        "a.json",
        "b/deep/two.json",
        "b/lines.jsonl",
        "b/one.json",
        "z.json",
    ]
    broken, *others = results
    assert (broken.ok, broken.report, broken.output) == (False, None, None)
    assert broken.error == f"{folder / 'a.json'}: broken JSON at line 2, column 8: Expecting ':' delimiter"
    assert [result.changed for result in others] == [True, True, True, False]
    for result, turns in zip(others, (8, 7, 6, 1), strict=True):
        reducer = cc.as_chat_reducer(STRATEGY, counter=COUNTER, hooks=())
        kept, report = reducer.reduce_with_report(session(turns))
        assert result.ok
        assert result.error is None
        assert result.report == report
        assert result.output == output / result.path.relative_to(folder)
        assert cc.formats.read_session(result.output).messages == kept
    assert files(output).keys() == {"b/deep/two.json", "b/lines.jsonl", "b/one.json", "z.json"}
    assert (output / "b/deep/two.json").read_text().startswith('{\n  "model": "m",\n  "messages": [\n    {')


def test_without_an_output_nothing_is_written(folder: Path) -> None:
    """What would be done is told all the same."""
    before = files(folder)
    results = done(folder)
    assert [bool(result.report) for result in results] == [False, True, True, True, True]
    assert {result.output for result in results} == {None}
    assert files(folder) == before


def test_results_come_one_by_one(folder: Path) -> None:
    """With one process a session is read when its result is asked for: nothing piles up."""
    results = compact_sessions(folder / "b", STRATEGY, counter=COUNTER)
    next(results)
    (folder / "b" / "lines.jsonl").write_text("")
    (folder / "b" / "one.json").unlink()
    empty, gone = results
    assert empty.error is not None
    assert "is empty" in empty.error
    assert gone.error == f"{folder / 'b' / 'one.json'}: No such file or directory"


def test_the_arguments_are_those_of_a_reducer(tmp_path: Path) -> None:
    """Each session is reduced with them; positions are pinned in every one."""
    orphan = {"role": "tool", "tool_call_id": "x", "content": ""}
    path = write(tmp_path / "s.json", [*session(), orphan])
    (result,) = done(path, on_invalid="repair", reserved=50, pinned=[2], output=tmp_path / "out")
    reducer = cc.as_chat_reducer(
        STRATEGY, counter=COUNTER, on_invalid="repair", reserved=50, pinned=lambda m: m == session()[2], hooks=()
    )
    kept, report = reducer.reduce_with_report([*session(), orphan])
    assert result.report == report
    assert report.repairs
    assert json.loads((tmp_path / "out" / "s.json").read_text()) == kept
    assert session()[2] in kept
    (by_predicate,) = done(path, on_invalid="repair", reserved=50, pinned=lambda message: message == session()[2])
    assert by_predicate.report == report
    (invalid,) = done(path, on_invalid="raise")
    assert invalid.error == (
        f"{path}: the history has 1 problem: messages[13]: a result for the call 'x', which was never made before"
    )
    (far,) = done(path, pinned=[3, 14])
    assert far.error == f"{path}: there is no position 14 to be pinned among 14 messages"
    (strange,) = done(path, format="anthropic")
    assert strange.error is not None
    assert strange.error.startswith(f"{path}: messages[13].role must be one of ")


def test_what_does_not_fit_is_told(folder: Path, tmp_path: Path) -> None:
    """K5: written, but not ``ok``; with ``on_overflow="raise"`` an error, the report, and no output."""
    strategy = cc.TokenBudgetStrategy(10)
    (result,) = done(folder / "b" / "one.json", strategy=strategy, output=tmp_path / "out")
    assert (result.error, result.ok) == (None, False)
    assert result.output is not None
    (raised,) = done(folder / "b" / "one.json", strategy=strategy, output=tmp_path / "raised", on_overflow="raise")
    assert raised.error == f"{folder / 'b' / 'one.json'}: {result.report.overflow_text()}"  # type: ignore[union-attr]
    assert raised.report == result.report
    assert (raised.output, (tmp_path / "raised").exists()) == (None, False)


def test_an_agents_file_is_read_in_its_format(tmp_path: Path) -> None:
    """What the file implies goes for its session, and notes tell what is not among the messages."""
    message = {"role": "user", "content": "x"}
    lines: list[dict[str, Any]] = [{"type": "user", "uuid": "1", "parentUuid": None, "message": message}]
    lines.append({**lines[0], "uuid": "2", "isSidechain": True})
    path = tmp_path / "s.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    before = path.read_bytes()
    (result,) = done([path], output=tmp_path / "out")
    assert result.report is not None
    assert result.report.format == "anthropic"
    assert result.notes == ("1 sidechain beside the main conversation",)
    assert json.loads((tmp_path / "out" / "s.jsonl").read_text()) == [message]
    assert path.read_bytes() == before


def test_hooks_run_here_and_in_order(folder: Path) -> None:
    """They get each report of this run, whichever process made it, and none of an earlier run."""
    for jobs in (1, 2):
        reports: list[cc.CompactionReport] = []
        results = done(folder, jobs=jobs, hooks=[reports.append], output=folder.parent / "out")
        assert reports == [result.report for result in results if result.report and not result.resumed]
        assert len(reports) == (4 if jobs == 1 else 0)


# -- which sessions -----------------------------------------------------------------------------------


def test_folders_patterns_and_files(folder: Path, tmp_path: Path) -> None:
    """Outputs keep the path below what was named: the folder, what a pattern begins with, the folder of all files."""
    one, two = folder / "b" / "one.json", folder / "b" / "deep" / "two.json"
    cases: list[tuple[Any, set[str]]] = [
        (folder / "b", {"one.json", "lines.jsonl", "deep/two.json"}),
        (str(folder / "**" / "*.jsonl"), {"b/lines.jsonl"}),
        (str(folder / "b" / "[lo]*.json*"), {"lines.jsonl", "one.json"}),
        (one, {"one.json"}),
        ([one, two], {"one.json", "deep/two.json"}),
        ([one, one, folder / "b" / "deep"], {"one.json", "two.json"}),
        ((path for path in (one,)), {"one.json"}),
    ]
    for number, (sessions, expected) in enumerate(cases):
        output = tmp_path / str(number)
        done(sessions, output=output)
        assert files(output).keys() == expected


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    """What is there is taken as it is."""
    path = write(tmp_path / "[x].json", session())
    assert done(path)[0].ok


def test_outputs_are_no_sessions(folder: Path) -> None:
    """An output folder inside the sessions is not read, and neither are records."""
    for _ in range(2):
        assert len(done(folder, output=folder / "out")) == 5
    assert len(done(str(folder / "**" / "*.json"), output=folder / "out")) == 4


@pytest.mark.parametrize(
    ("sessions", "settings", "error"),
    [
        ([], {}, "sessions must name files, folders or patterns, got none"),
        ("gone/*.json", {}, "sessions must name files, folders or patterns, got 'gone/*.json', where there are no ses"),
        (5, {}, "sessions must name files, folders or patterns, got 5"),
        ([b"x"], {}, "sessions must name files, folders or patterns, got b'x' among them"),
        ("x", {"jobs": 0}, "jobs must be an int of 1 or more, or None for as many as there are cores, got 0"),
        ("x", {"jobs": True}, "jobs must be an int of 1 or more, or None for as many as there are cores, got True"),
        ("x", {"force": 1}, "force must be True or False, got 1"),
        ("x", {"output": __file__}, "output must be a folder, got "),
        ("x", {"output": ""}, "output must be a folder, got ''"),
        ("x", {"output": 5}, "output must be the path of a folder, or None, got 5"),
        ("x", {"output": b"x"}, "output must be the path of a folder, or None, got b'x'"),
        (b"x", {}, "sessions must name files, folders or patterns, got b'x'"),
        ("x", {"strategy": 5}, "strategy must be a CompactionStrategy, got 5"),
        ("x", {"on_invalid": "no"}, "on_invalid must be one of 'keep', 'repair', 'raise', got 'no'"),
        ("x", {"reserved": -1}, "reserved must be an int of 0 or more, got -1"),
        ("x", {"hooks": 5}, "hooks must be None or a list of callables"),
        ("x", {"counter": 5}, "counter must be a Counter, 'o200k_base', a function"),
        ("x", {"counter": "gone.json"}, "counter must be a Counter, 'o200k_base', a function"),
        ("x", {"pinned": "x"}, "pinned must be a predicate over messages, or an iterable of message ids and positions"),
        (
            "x",
            {"pinned": [{}]},
            "pinned must be a predicate over messages, or an iterable of message ids and positions",
        ),
        (
            "x",
            {"pinned": [-1]},
            "pinned must be a predicate over messages, or an iterable of message ids and positions",
        ),
    ],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_wrong_arguments_fail_at_the_call(sessions: Any, settings: dict[str, Any], error: str, jobs: int) -> None:
    """With what was given and what was expected, before anything is read or a process is started."""
    with pytest.raises((TypeError, ValueError)) as raised:
        compact_sessions(sessions, **{"strategy": STRATEGY, "jobs": jobs, **settings})
    assert str(raised.value).startswith(error)


def test_no_session_is_ever_overwritten(folder: Path, tmp_path: Path) -> None:
    """The folder itself, by any name, and two sessions for one file, are refused before anything is written."""
    before = files(folder)
    (tmp_path / "link").symlink_to(folder)
    for output in (folder, tmp_path / "link", folder / "b" / ".."):
        with pytest.raises(ValueError, match="output must be another folder than the one that is read"):
            compact_sessions(folder, STRATEGY, output=output)
    write(tmp_path / "one.json", session())
    with pytest.raises(ValueError, match="sessions must have names of their own below the output"):
        compact_sessions([folder / "b", tmp_path / "one.json"], STRATEGY, output=tmp_path / "out")
    with pytest.raises(ValueError, match="sessions must have a path below the output"):
        compact_sessions(str(folder / "[b]" / ".." / "*.json"), STRATEGY, output=tmp_path / "out")
    assert files(folder) == before
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("where", ["the output", "a folder that a link in it leads to", "a link"])
def test_a_file_that_is_not_ours_is_not_replaced(folder: Path, tmp_path: Path, where: str) -> None:
    """Refused for all sessions at once, before anything is read, and named; with ``force`` it is replaced."""
    output = tmp_path / "out"
    other = (output / "deep") if where == "the output" else (tmp_path / "other")
    other.mkdir(parents=True)
    output.mkdir(exist_ok=True)
    mine = write(other / "two.json", ["mine"])
    if where == "a link":
        (output / "lines.jsonl").symlink_to(mine)
    elif where != "the output":
        (output / "deep").symlink_to(other)
    name = "lines.jsonl" if where == "a link" else "deep/two.json"
    for _ in range(2):
        with pytest.raises(ValueError, match="output must be another folder, or force=True must be given") as raised:
            compact_sessions(folder / "b", STRATEGY, output=output, counter=COUNTER)
        assert str(raised.value).endswith(f"got {str(output)!r} with {str(output / name)!r}")
        assert json.loads(mine.read_text()) == ["mine"]
        assert not (output / FOLDER).exists()
    assert all(result.ok for result in done(folder / "b", output=output, force=True))
    assert len(done(folder / "b", output=output)) == 3


def test_each_that_is_not_ours_is_counted(folder: Path, tmp_path: Path) -> None:
    """The first is named, and how many more there are."""
    for name in ("one.json", "lines.jsonl"):
        write(tmp_path / name, [])
    with pytest.raises(ValueError, match=r"with '.*/lines\.jsonl' and 1 more$"):
        compact_sessions(folder / "b", STRATEGY, output=tmp_path)


def test_sessions_below_a_folder_of_our_name(tmp_path: Path) -> None:
    """What is passed over is a folder of records in what is read, and not all that lies below such a folder."""
    folder = tmp_path / FOLDER / "sessions"
    (folder / FOLDER).mkdir(parents=True)
    write(folder / "a.json", session())
    write(folder / FOLDER / "b.json", session())
    for named in (folder, str(folder / "*.json")):
        assert [result.path.name for result in done(named)] == ["a.json"]


def test_a_file_by_two_names_is_one_session(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative and absolute, through a folder's link, within a folder that is named as well."""
    monkeypatch.chdir(folder)
    (tmp_path / "link").symlink_to(folder / "b")
    names = ["b/one.json", folder / "b" / "one.json", "b/../b/one.json", tmp_path / "link" / "one.json", "b"]
    assert [str(result.path) for result in done(names)] == ["b/one.json", "b/deep/two.json", "b/lines.jsonl"]


# -- again --------------------------------------------------------------------------------------------


def test_what_was_done_is_not_done_again(folder: Path, tmp_path: Path) -> None:
    """A second run gives the same results, and writes nothing; what failed is tried again."""
    output = tmp_path / "out"
    first = done(folder, output=output)
    for path in output.rglob("*.json*"):
        os.utime(path, (0, 0))
    again = done(folder, output=output)
    assert [attrs.evolve(result, resumed=False) for result in again] == first
    assert [result.resumed for result in again] == [False, True, True, True, True]
    assert {path.stat().st_mtime for path in output.rglob("*.json*")} == {0}
    write(folder / "a.json", session())
    assert [result.resumed for result in done(folder, output=output)] == [False, True, True, True, True]
    assert not any(result.resumed for result in done(folder, output=output, force=True))


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda body: body[:-9],
    "of another version": lambda body: json.dumps({**json.loads(body), "more": 1}).encode(),
    "without end": lambda _: b"[" * 100_000,
    "edited": lambda body: body.replace(b'"tokens_before": ', b'"tokens_before": "evil", "x": '),
    "no text": lambda _: b"\xff\x00",
    "empty": lambda _: b"",
}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_record_is_none(folder: Path, tmp_path: Path, damage: str, signed: bool) -> None:
    """Whatever stands in it: the session is done again, and so the record; others are not touched by it."""
    done(folder / "b", output=tmp_path / "out")
    record = Records(tmp_path / "out").path("one.json")
    body = DAMAGE[damage](record.read_bytes().partition(b"\n")[2])
    record.write_bytes(f"{digest(body)}\n".encode() + body if signed else body)
    assert [result.resumed for result in done(folder / "b", output=tmp_path / "out")] == [True, True, False]
    assert all(result.resumed for result in done(folder / "b", output=tmp_path / "out"))


def test_a_folder_in_the_place_of_a_record(folder: Path, tmp_path: Path) -> None:
    """The session is done, each time."""
    done(folder / "b", output=tmp_path / "out")
    record = Records(tmp_path / "out").path("one.json")
    record.unlink()
    record.mkdir()
    for _ in range(2):
        results = done(folder / "b", output=tmp_path / "out")
        assert [(result.error, result.resumed) for result in results] == [(None, True), (None, True), (None, False)]


def test_names_as_long_as_a_name_can_be(tmp_path: Path) -> None:
    """The record is not named by them."""
    write(tmp_path / f"{'x' * 250}.json", session())
    assert [[result.resumed for result in done(tmp_path, output=tmp_path / "out")] for _ in "12"] == [[False], [True]]


@pytest.mark.parametrize("what", ["session", "output", "no output", "no record"])
def test_what_changed_is_done_again(folder: Path, tmp_path: Path, what: str) -> None:
    """By content: an edited session, an output that somebody changed or removed, a record that cannot be read."""
    output, name = tmp_path / "out", "one.json"
    done(folder / "b", output=output)
    record = Records(output).path(name)
    if what == "session":
        write(folder / "b" / name, session(9))
    elif what == "output":
        (output / name).write_text("[]")
    elif what == "no output":
        (output / name).unlink()
    else:
        record.unlink()
        (output / name).unlink()
    results = {result.path.name: result for result in done(folder / "b", output=output)}
    assert [result.resumed for result in results.values()] == [True, True, False]
    assert len(json.loads((output / name).read_text())) > 1
    assert all(result.resumed for result in done(folder / "b", output=output))


@attrs.frozen(kw_only=True)
class Told(Picky):
    """Holds whatever it is told."""

    told: Any = None


def by_value(**told: Any) -> Told:
    return Told(trigger=cc.messages > 4, target=cc.messages <= 3, min_preserved_groups=1, told=told)


def fresh(text: str) -> str:
    """An equal text that is another object, as JSON gives them."""
    return json.loads(json.dumps(text))  # type: ignore[no-any-return]


def test_equal_settings_are_the_same_whatever_they_are_made_of(folder: Path, tmp_path: Path) -> None:
    """Which objects are identical, the order of keys, of pins, of a set: none of it is a setting."""
    one, other = "turns of old", fresh("turns of old")
    first = by_value(a=[one, one], b={"x": 1, "y": {2, "3"}}, f=json.dumps, path=Path("x"))
    again = by_value(path=Path("x"), f=json.dumps, b={"y": {"3", 2}, "x": 1}, a=[one, other])
    done(folder / "b", output=tmp_path, strategy=first, pinned=[2, 0], on_invalid="keep")
    settings: dict[str, Any] = {"on_invalid": fresh("keep"), "pinned": [0, 2, 0]}
    assert all(result.resumed for result in done(folder / "b", output=tmp_path, strategy=again, **settings))
    for changed in (by_value(a=[one]), by_value(a=(one, one)), by_value(f=json.loads), by_value(f=lambda: 0)):
        assert not any(result.resumed for result in done(folder / "b", output=tmp_path, strategy=changed, **settings))


class Plain(cc.CompactionStrategy):
    """A plain class with something of its own."""

    def __init__(self, more: Any) -> None:
        super().__init__(trigger=cc.tokens > 300)
        self.more = more

    def compact_core(self, index: cc.MessageIndex) -> None:
        """Nothing leaves."""

    @cached_property
    def size(self) -> int:
        return len(self.more)


def test_a_class_of_the_callers_is_known_by_its_name_and_fields() -> None:
    """A plain attribute is a field, what was worked out is none; a lambda and a local class have no name to go by."""
    assert canonical(Plain([1])) == canonical(Plain([1])) != canonical(Plain([2]))
    plain = Plain([1])
    before = canonical(plain)
    assert plain.size == 1
    assert canonical(plain) == before
    values: list[Any] = [
        1, True, 1.0, "1", b"1", None, (1,), [1], {1}, frozenset({1}), {1: 1}, OrderedDict({1: 1}), Path("1"), len,
        "1".count, partial(json.dumps, indent=1), cc.GroupKind.USER, str.split, deque([1]), Plain, COUNTER,
    ]  # fmt: skip
    assert len({canonical(value) for value in values}) == len(values)
    for value in (lambda: 0, partial(lambda: 0), type("Local", (), {}), threading.Lock()):
        with pytest.raises(TypeError):
            canonical(value)


@pytest.mark.parametrize(
    "settings",
    [
        {"strategy": cc.TokenBudgetStrategy(301, target_tokens=200)},
        {"counter": characters_counter()},
        {"format": "openai_chat"},
        {"reserved": 1},
        {"pinned": [0]},
        {"on_invalid": "repair"},
    ],
)
def test_other_settings_do_it_again(folder: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    """Each argument that may change a result."""
    done(folder / "b", output=tmp_path)
    assert not any(result.resumed for result in done(folder / "b", output=tmp_path, **settings))
    assert all(result.resumed for result in done(folder / "b", output=tmp_path, **settings))


def test_a_changed_tokenizer_file_does_it_again(folder: Path, tmp_path: Path) -> None:
    """Its content is what counts, not its name or its time."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    path = tmp_path / "words.json"
    for number, vocabulary in enumerate([{"?": 0}, {"?": 0}, {"?": 0, "word": 1}]):
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))  # noqa: S106
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.save(str(path))
        results = done(folder / "b", output=tmp_path / "out", counter=path)
        assert {result.resumed for result in results} == {number == 1}
        assert results[0].report is not None
        assert results[0].report.counter == "tokenizers:words"


def test_what_has_no_name_beyond_its_process_is_done_again(folder: Path, tmp_path: Path) -> None:
    """A lambda may be another one in the next run: what it wrote is known as ours, and no more."""
    for _ in range(2):
        assert not any(result.resumed for result in done(folder / "b", output=tmp_path, counter=lambda text: len(text)))


def test_a_report_survives_its_record() -> None:
    """Every field comes back from JSON as it was, on recorded sessions."""
    strategy = cc.TruncationStrategy(trigger=cc.tokens > 2_000)
    for path in recorded_sessions("anthropic")[:12]:
        reducer = cc.as_chat_reducer(strategy, counter=COUNTER, on_invalid="repair", hooks=())
        report = reducer.reduce_with_report(load_session(path))[1]
        again = report_of(json.loads(json.dumps(report.to_dict())))
        assert again == report
        assert repr(again) == repr(report)


def test_an_interrupted_write_leaves_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither half a file nor a temporary one, and an old output as it was."""
    output = tmp_path / "out"
    done(folder / "b", output=output)
    before = files(output)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        done(folder / "b", output=output, reserved=1)
    assert files(output) == before
    assert not list(output.rglob("*.tmp"))


def test_an_output_that_cannot_be_written_is_the_error_of_its_session(folder: Path, tmp_path: Path) -> None:
    """A folder in its place, for one."""
    (tmp_path / "out" / "one.json").mkdir(parents=True)
    results = {result.path.name: result for result in done(folder / "b", output=tmp_path / "out")}
    assert [result.ok for result in results.values()] == [True, True, False]
    assert str(results["one.json"].error).startswith(f"{folder / 'b' / 'one.json'}: Is a directory")


# -- several processes ---------------------------------------------------------------------------------


def test_a_strategy_that_fails_or_kills_its_process(tmp_path: Path) -> None:
    """Each is the error of its own session, named; all others are done, in order, whoever shared the process."""
    words = [f"m{number}" for number in range(12)]
    words[2], words[5], words[6] = "fail", "die", "die"
    for number, word in enumerate(words):
        write(tmp_path / f"{number:02}.json", [{"role": "system", "content": word}, *session(system=False)])
    results = done(tmp_path, strategy=PICKY, jobs=2)
    assert [result.path.name for result in results] == [f"{number:02}.json" for number in range(12)]
    assert [number for number, result in enumerate(results) if not result.ok] == [2, 5, 6]
    assert results[2].error == f"{results[2].path}: ZeroDivisionError: on purpose"
    died = "the process that worked on it died: it may have taken too much memory"
    assert [results[number].error for number in (5, 6)] == [f"{results[number].path}: {died}" for number in (5, 6)]


def test_a_counter_is_loaded_once_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once a session: a vocabulary takes half a second."""
    notes = tmp_path / "loads"
    monkeypatch.setenv(_LOADS, str(notes))
    (tmp_path / "sessions").mkdir()
    for number in range(10):
        write(tmp_path / "sessions" / f"{number}.json", session())
    results = done(tmp_path / "sessions", counter=Loaded(), jobs=2)
    assert all(result.report and result.report.counter == "loaded" for result in results)
    loads = notes.read_text().split()
    assert 1 <= len(loads) == len(set(loads)) <= 2
    assert str(os.getpid()) not in loads


def test_what_does_not_pickle_is_named(folder: Path) -> None:
    """With the argument, and with what to pass instead."""
    for name, value, instead in (
        ("counter", lambda text: len(text), "the path of a tokenizer.json"),
        ("pinned", lambda _: False, "message ids or positions"),
        ("strategy", attrs.evolve(PICKY, trigger=cc.predicate(lambda _: True)), "one whose class and functions stand"),
    ):
        with pytest.raises(TypeError, match=f"^{name} must pickle where jobs is more than 1, got .*; pass {instead}"):
            compact_sessions(folder, **{"strategy": STRATEGY, "jobs": 2, name: value})  # type: ignore[arg-type]


def test_a_counter_that_cannot_be_loaded_there_is_an_error_at_once(folder: Path, tmp_path: Path) -> None:
    """It would be the same for every session."""
    path = tmp_path / "none.json"
    path.write_text("{}")
    for jobs in (1, 2):
        with pytest.raises(ValueError, match="path must name a tokenizer of the tokenizers package"):
            compact_sessions(folder, STRATEGY, counter=str(path), jobs=jobs)


def test_no_process_starts_for_what_is_done_already(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier run did is told here, in its order."""
    notes = tmp_path / "loads"
    notes.touch()
    monkeypatch.setenv(_LOADS, str(notes))
    first = done(folder / "b", output=tmp_path / "out", counter=Loaded())
    again = done(folder / "b", output=tmp_path / "out", counter=Loaded(), jobs=2)
    assert [attrs.evolve(result, resumed=False) for result in again] == first
    assert notes.read_text() == ""
    write(folder / "b" / "lines.jsonl", session(9))
    mixed = done(folder / "b", output=tmp_path / "out", counter=Loaded(), jobs=2)
    assert [result.resumed for result in mixed] == [True, False, True]
    assert len(notes.read_text().split()) == 1


def test_what_cannot_be_loaded_there_is_told(folder: Path) -> None:
    """Something that pickles here and not there, as a class of an interactive session."""
    with pytest.raises(cc.CompactionError, match=r"^the processes of jobs cannot start: ZeroDivisionError: ") as raised:
        done(folder, counter=Fragile(process=os.getpid()), jobs=2)
    assert str(raised.value).endswith("; or pass jobs=1")


@attrs.frozen
class Fragile(Loaded):
    """A counter for one process only."""

    process: int = 0

    def __reduce__(self) -> Any:
        return _fragile, (self.process,)


def _fragile(process: int) -> Fragile:
    return Fragile(process=process // (os.getpid() == process))


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_result_that_does_not_come_through_is_the_error_of_its_session(where: str) -> None:
    """It does not pickle in the process that has it, or cannot be put together in the one that wants it."""
    task = Task(Path("x.json"), "x.json")
    held: Any = Fragile(process=-1) if where == "here" else threading.Lock()
    ours, its = Pipe()
    _answer(its, task, SessionResult(path=task.path, notes=(held,)))
    pool, session_of = _Pool(b"", 1), _Session(task)
    pool._take(_Process(None, ours, deque([session_of])))  # type: ignore[arg-type]  # nobody asks for it
    assert session_of.result is not None
    error = "x.json: ZeroDivisionError: " if where == "here" else "x.json: TypeError: cannot pickle"
    assert str(session_of.result.error).startswith(error)


def test_results_are_values() -> None:
    """Frozen, equal to their equals, and handed over between processes."""
    result = SessionResult(path=Path("x"), error="x: no")
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        result.error = None  # type: ignore[misc]


SCRIPT = """
import sys
from pathlib import Path
import chat_compaction as cc
from chat_compaction._batch import compact_sessions
from tests.test_batch import Slow

def main():
    strategy = Slow(trigger=cc.messages > 4, target=cc.messages <= 3, min_preserved_groups=1)
    try:
        for result in compact_sessions(sys.argv[1], strategy, output=sys.argv[2], jobs=2, counter=cc.EstimateCounter()):
            print(result.path.name, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
GUARD
"""


@attrs.frozen(kw_only=True)
class Slow(Picky):
    """Takes its time."""

    def compact_core(self, index: cc.MessageIndex) -> bool:
        time.sleep(600 if index.included_messages()[0]["content"] == "stuck" else 0.05)
        return super().compact_core(index)


def started(tmp_path: Path, folder: Path, guard: str) -> subprocess.Popen[str]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("GUARD", guard))
    return subprocess.Popen(
        [sys.executable, script, folder, tmp_path / "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        start_new_session=True,
        # What a shell runs in the background does not listen to Ctrl-C, nor does what that runs.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


MAIN = 'if __name__ == "__main__":\n    main()'


def many(tmp_path: Path, word: str = "You are terse.") -> Path:
    """Enough sessions to be in the midst of; the twentieth begins with a word of its own."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    for number in range(60):
        system = {"role": "system", "content": word if number == 20 else "You are terse."}
        write(folder / f"{number:02}.json", [system, *session(system=False)])
    return folder


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("pause", [0.0, 0.01, 0.03, 0.05, 0.2])
@pytest.mark.parametrize("line", ["00.json\n", "19.json\n"])
def test_two_interruptions_end_it_too(tmp_path: Path, pause: float, line: str) -> None:
    """Whoever presses Ctrl-C twice does not wait for what is in work; all processes end, and nothing is half there."""
    with started(tmp_path, many(tmp_path, "stuck"), MAIN) as process:
        assert process.stdout is not None
        while process.stdout.readline() != line:
            pass
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(pause)
        process.communicate(timeout=60)  # It returns when all are gone who could write to these pipes.
    assert not list((tmp_path / "out").rglob("*.tmp"))
    assert all(len(json.loads(text)) == 3 for text in files(tmp_path / "out").values())


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_session_that_does_not_end_is_not_waited_for(tmp_path: Path) -> None:
    """One interruption is enough: what is in work has some seconds to be finished."""
    with started(tmp_path, many(tmp_path, "stuck"), MAIN) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "19.json\n":
            pass
        os.killpg(process.pid, signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
    assert (printed.splitlines()[-1], errors) == ("interrupted", "")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_processes_end_without_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    """However it was ended, nobody goes on for nobody: each finishes its session at most."""
    with started(tmp_path, many(tmp_path), MAIN) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "00.json\n"
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == -number
    assert 0 < len(files(tmp_path / "out")) < 60


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interruption_stops_cleanly(tmp_path: Path) -> None:
    """Ctrl-C reaches all processes: what is in work is finished, no more is begun, nobody shows a traceback."""
    with started(tmp_path, many(tmp_path), MAIN) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "00.json\n"
        os.killpg(process.pid, signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
    assert printed.splitlines()[-1] == "interrupted"
    assert errors == ""
    written = files(tmp_path / "out")
    assert 0 < len(written) < 60
    assert all(len(json.loads(text)) == 3 for text in written.values())
    assert not list((tmp_path / "out").rglob("*.tmp"))
    records = list((tmp_path / "out" / FOLDER).rglob("*.record"))
    assert len(records) == len(written)


def test_a_script_without_its_guard_is_told_what_is_missing(tmp_path: Path, folder: Path) -> None:
    """A process that is started anew runs the script again, which would start more processes."""
    with started(tmp_path, folder, "main()") as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "CompactionError: the processes of jobs cannot start: a script that is run by itself must make" in errors
