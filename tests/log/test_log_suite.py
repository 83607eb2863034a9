"""The conformance suite is under test: each broken log fails the test that names its fault, and no test is idle."""

import dataclasses
import inspect
import math
import time
import unicodedata
from collections import defaultdict

import pytest
from hypothesis import Phase, settings

from pagein.backends.memory import InMemoryLog
from pagein.errors import Conflict, LogClosed, LogError
from pagein.events.steps import ActionStep, Image, Observation, PlanningStep, TaskStep, Text
from pagein.log.base import Verification
from pagein.log.codec import encode
from pagein.log.hash_chain import chain_rows, make_entries, origin
from pagein.testing.logs import LogTests, open_and_close


class GoodLog(InMemoryLog):
    """Durable by a shelf on which the sessions of one store lie."""

    def __init__(self, shelf, session="default", tenant=""):
        super().__init__(session=session, tenant=tenant)
        self._rows, self._blobs = shelf[self.shelf_key()]

    def shelf_key(self):
        return (self.tenant, self.session)


class Suite(LogTests):
    generated = settings(max_examples=200, deadline=None, database=None, derandomize=True, phases=(Phase.generate,))

    def stored_bytes(self, log):
        return sum(len(row.body) for row in log._rows) + sum(map(len, log._blobs.values()))

    def tamper(self, log, position):
        row = log._rows[position]
        log._rows[position] = dataclasses.replace(row, body=row.body + b" ")


TESTS = [name for name in dir(LogTests) if name.startswith("test_")]


def outcome(suite, name, log):
    """Runs one conformance test on a new store: "passed", "failed", or why it was skipped."""
    shelf = defaultdict(lambda: ([], {}))

    def open_log(session="default", tenant=""):
        return log(shelf, session, tenant)

    try:
        test = getattr(suite(), name)
        if "log" in inspect.signature(test).parameters:
            with open_and_close(open_log) as opened:
                test(opened)
        else:
            test(open_log)
    except pytest.skip.Exception as reason:
        return str(reason)
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - a broken log may fail in any way
        return "failed"
    return "passed"


BROKEN = {}


def breaks(*tests):
    """Says which tests name this log's fault."""

    def note(log):
        BROKEN[log] = tests
        return log

    return note


def changing(change):
    """A log that reads every body through a function."""

    class Changing(GoodLog):
        def read(self, start=0, stop=None):
            return (dataclasses.replace(each, body=change(each.body)) for each in super().read(start, stop))

    return Changing


def in_every_text(change):
    """The same, where the function changes texts and their place in the body does not matter."""

    def visit(value):
        if isinstance(value, str):
            return change(value)
        if isinstance(value, tuple):
            return tuple(map(visit, value))
        if dataclasses.is_dataclass(value):
            names = [each.name for each in dataclasses.fields(value)]
            return type(value)(*(visit(getattr(value, name)) for name in names))
        return value

    return visit


# What is read is not what was written


@breaks("test_a_new_log_is_empty")
class CountsFromOne(GoodLog):
    def head(self):
        return super().head() + 1


@breaks("test_append_returns_the_entries_that_reading_gives")
class ReturnsTheLastOnly(GoodLog):
    def append(self, bodies, *, after, at):
        return super().append(bodies, after=after, at=at)[-1:]


@breaks("test_positions_count_from_zero_and_head_is_the_next")
class ReadsBackwards(GoodLog):
    def read(self, start=0, stop=None):
        return iter(list(super().read(start, stop))[::-1])


@breaks("test_every_kind_of_body_comes_back_equal")
class MakesPlansTasks(changing(lambda body: TaskStep(body.content) if isinstance(body, PlanningStep) else body)):
    pass


@breaks("test_any_body_comes_back_equal")
class LosesTheThirdCall(
    changing(
        lambda body: (
            dataclasses.replace(body, tool_calls=body.tool_calls[:2], observations=body.observations[:2])
            if isinstance(body, ActionStep) and len(body.tool_calls) > 2
            else body
        )
    )
):
    pass


@breaks("test_hazardous_text_is_not_changed", "test_any_body_comes_back_equal")
class Normalises(changing(in_every_text(lambda text: unicodedata.normalize("NFC", text)))):
    pass


@breaks("test_hazardous_text_is_not_changed", "test_any_body_comes_back_equal")
class LosesSurrogates(changing(in_every_text(lambda text: text.encode("utf-8", "replace").decode()))):
    pass


@breaks("test_hazardous_text_is_not_changed")
class JoinsSurrogates(
    changing(in_every_text(lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")))
):
    pass


@breaks("test_hazardous_text_is_not_changed")
class EndsAtNul(changing(in_every_text(lambda text: text.split("\0")[0]))):
    pass


def plain(body):
    match body:
        case ActionStep(content=(Text(text=text, extra=None),)):
            return dataclasses.replace(body, content=text)
        case _:
            return body


@breaks("test_plain_text_parts_and_nothing_stay_apart")
class MakesOnePartPlain(changing(plain)):
    pass


@breaks("test_plain_text_parts_and_nothing_stay_apart")
class MakesNothingOfEmpty(
    changing(
        lambda body: dataclasses.replace(body, content=body.content or None) if isinstance(body, ActionStep) else body
    )
):
    pass


@breaks("test_equal_bodies_are_entries_of_their_own")
class Deduplicates(GoodLog):
    def append(self, bodies, *, after, at):
        return super().append(list(dict.fromkeys(bodies)), after=after, at=at)


@breaks("test_a_long_batch_is_written_whole")
class DropsTheLastOfALongBatch(GoodLog):
    def append(self, bodies, *, after, at):
        return super().append(bodies[:500], after=after, at=at)


@breaks("test_a_long_batch_is_written_whole", "test_append_returns_the_entries_that_reading_gives")
class DropsTheLastOfABatch(GoodLog):
    def append(self, bodies, *, after, at):
        return super().append(bodies[:-1] if len(bodies) > 1 else bodies, after=after, at=at)


@breaks("test_times_are_kept_exactly")
class RoundsTimes(GoodLog):
    def append(self, bodies, *, after, at):
        return super().append(
            bodies, after=after, at=round(at, 3) if isinstance(at, float) and math.isfinite(at) else at
        )


@breaks("test_images_and_large_texts_come_back_byte_for_byte")
class CutsLargeObservations(
    changing(
        lambda body: (
            dataclasses.replace(
                body, observations=(Observation(body.observations[0].call_id, body.observations[0].content[:100_000]),)
            )
            if isinstance(body, ActionStep) and len(body.observations) == 1 and body.observations[0]
            else body
        )
    )
):
    pass


@breaks("test_images_and_large_texts_come_back_byte_for_byte", "test_every_kind_of_body_comes_back_equal")
class ReencodesImages(
    changing(
        lambda body: (
            TaskStep(tuple(Image(part.data[:-1]) if isinstance(part, Image) else part for part in body.content))
            if isinstance(body, TaskStep) and isinstance(body.content, tuple)
            else body
        )
    )
):
    pass


@breaks("test_a_clock_that_goes_backwards_changes_no_order")
class ReadsInOrderOfTime(GoodLog):
    def read(self, start=0, stop=None):
        return iter(sorted(super().read(start, stop), key=lambda each: each.at))


@breaks("test_a_clock_that_goes_backwards_changes_no_order")
class RefusesAnEarlierTime(GoodLog):
    def append(self, bodies, *, after, at):
        if self._rows and isinstance(at, float) and at < self._rows[-1].at:
            at = self._rows[-1].at
        return super().append(bodies, after=after, at=at)


# Ranges


@breaks("test_a_range_is_all_positions_inside_it")
class StopsLate(GoodLog):
    def read(self, start=0, stop=None):
        return super().read(start, None if stop is None else stop + 1)


@breaks("test_a_range_is_all_positions_inside_it")
class StartsLate(GoodLog):
    def read(self, start=0, stop=None):
        return super().read(start + (start > 0), stop)


@breaks("test_a_range_is_all_positions_inside_it")
class CountsFromTheEnd(GoodLog):
    def read(self, start=0, stop=None):
        return super().read(start + len(self._rows) if start < 0 else start, stop)


@breaks("test_a_long_log_can_be_read_from_any_position")
class ReadsOnePage(GoodLog):
    def read(self, start=0, stop=None):
        pages = list(super().read(start, stop))
        return iter(pages[:100] if start else pages)


@breaks("test_a_reading_ends_where_the_log_ended_when_it_began")
class RunsAfterTheWriter(GoodLog):
    def read(self, start=0, stop=None):
        while start < (len(self._rows) if stop is None else min(stop, len(self._rows))):
            yield from super().read(start, start + 1)
            start += 1


# Refusals


@breaks("test_a_stale_writer_is_refused_and_nothing_is_written", "test_of_two_handles_the_slower_is_refused")
class IgnoresAfter(GoodLog):
    def _write(self, records, after, at):
        return super()._write(records, len(self._rows), at)


@breaks("test_a_stale_writer_is_refused_and_nothing_is_written")
class WritesBeforeItRefuses(GoodLog):
    def append(self, bodies, *, after, at):
        if after < self.head():
            super().append(bodies, after=self.head(), at=at)
        return super().append(bodies, after=after, at=at)


@breaks("test_a_stale_writer_is_refused_and_nothing_is_written")
class SwapsTheHeads(GoodLog):
    def append(self, bodies, *, after, at):
        try:
            return super().append(bodies, after=after, at=at)
        except Conflict as error:
            raise Conflict(error.head, error.expected) from error


@breaks("test_a_writer_ahead_of_the_log_is_refused")
class LetsWritersAheadIn(GoodLog):
    def _write(self, records, after, at):
        return super()._write(records, min(after, len(self._rows)) if after > 0 else after, at)


@breaks("test_a_batch_with_one_bad_body_leaves_nothing")
class WritesHalfABatch(GoodLog):
    def append(self, bodies, *, after, at):
        if len(bodies) < 2:
            return super().append(bodies, after=after, at=at)
        return sum((super(GoodLog, self).append([each], after=after + n, at=at) for n, each in enumerate(bodies)), ())


@breaks("test_a_body_that_would_not_come_back_is_refused")
class SkipsWhatItCannotStore(GoodLog):
    def append(self, bodies, *, after, at):
        kept = []
        for each in bodies:
            try:
                kept.append(encode(each).value)
            except LogError:
                if not dataclasses.is_dataclass(each):
                    raise
        return super().append(kept, after=after, at=at)


@breaks("test_a_time_that_is_none_is_refused")
class TakesAnyTime(GoodLog):
    def append(self, bodies, *, after, at):
        return super().append(bodies, after=after, at=at if isinstance(at, float) and abs(at) < 1e300 else 0.0)


@breaks("test_an_empty_batch_writes_nothing_and_a_stale_one_is_told")
class TakesEmptyBatchesUnseen(GoodLog):
    def append(self, bodies, *, after, at):
        return super().append(bodies, after=after, at=at) if bodies else ()


@breaks("test_the_log_can_be_used_after_a_failure")
class IsStuckAfterAFailure(GoodLog):
    stuck = False

    def append(self, bodies, *, after, at):
        if self.stuck:
            raise LogError("cannot start a transaction within a transaction")
        try:
            return super().append(bodies, after=after, at=at)
        except LogError:
            self.stuck = True
            raise


@breaks("test_a_closed_log_says_so")
class AnswersAfterClose(GoodLog):
    def close(self):
        pass


@breaks("test_a_closed_log_says_so")
class ClosesOnce(GoodLog):
    def close(self):
        self._check_open()
        super().close()


@breaks("test_a_closed_log_says_so")
class IsEmptyAfterClose(GoodLog):
    def read(self, start=0, stop=None):
        try:
            return super().read(start, stop)
        except LogClosed:
            return iter(())


# Reaching in


class KeepsObjects(GoodLog):
    """Hands out the very objects it keeps."""

    kept: dict

    def __init__(self, *args):
        super().__init__(*args)
        self.kept = {}

    def entry(self, entry, body):
        return self.kept.setdefault((entry.position, entry.digest), dataclasses.replace(entry, body=body))

    def read(self, start=0, stop=None):
        return (self.entry(each, each.body) for each in super().read(start, stop))


@breaks("test_a_reader_cannot_reach_into_the_log")
class GivesReadersItsObjects(KeepsObjects):
    pass


@breaks("test_a_writer_cannot_reach_into_the_log")
class KeepsTheWritersObjects(KeepsObjects):
    def append(self, bodies, *, after, at):
        entries = super().append(bodies, after=after, at=at)
        return tuple(self.entry(each, body) for each, body in zip(entries, bodies, strict=True))


# Proof


@breaks("test_verify_names_the_entry_that_was_changed")
class SaysAllIsWell(GoodLog):
    def verify(self):
        self._check_open()
        return Verification(len(self._rows))


@breaks("test_verify_looks_at_every_entry")
class VerifiesTheFirstHundred(GoodLog):
    def verify(self):
        found = super().verify()
        return Verification(min(found.entries, 100), found.problems)


@breaks("test_verify_names_the_entry_that_was_changed")
class BlamesTheNext(GoodLog):
    def verify(self):
        found = super().verify()
        shifted = (dataclasses.replace(each, position=each.position + 1) for each in found.problems)
        return Verification(found.entries, tuple(shifted))


@breaks("test_digests_are_the_chain_that_every_store_derives")
class DoesNotChain(GoodLog):
    def _write(self, records, after, at):
        if after != len(self._rows):
            raise Conflict(after, len(self._rows))
        start = origin(self.tenant, self.session)
        rows = [chain_rows([each], after=after + n, at=at, previous=start)[0] for n, each in enumerate(records)]
        for record in records:
            self._blobs.update((blob.name, blob.data) for blob in record.blobs)
        self._rows += rows
        return make_entries(rows, records)


@breaks("test_an_image_or_a_large_text_is_stored_once")
class StoresImagesAgain(GoodLog):
    def append(self, bodies, *, after, at):
        entries = super().append(bodies, after=after, at=at)
        for record in map(encode, bodies):
            self._blobs.update((f"{blob.name}-{after}", blob.data) for blob in record.blobs)
        return entries


# Two at once


@breaks("test_threads_never_share_a_position")
class ChecksThenWrites(GoodLog):
    def append(self, bodies, *, after, at):
        if after == len(self._rows):
            time.sleep(0.0005)
            after = len(self._rows)
        return super().append(bodies, after=after, at=at)


@breaks("test_a_log_opened_again_is_the_same")
class ForgetsOnClose(GoodLog):
    def close(self):
        self._rows.clear()
        super().close()


class CachesTheHead(GoodLog):
    seen = None

    def head(self):
        super().head()
        self.seen = len(self._rows) if self.seen is None else self.seen
        return self.seen

    def append(self, bodies, *, after, at):
        entries = super().append(bodies, after=after, at=at)
        self.seen = after + len(entries)
        return entries


@breaks("test_a_second_handle_sees_what_the_first_wrote")
class SeesOnlyItself(CachesTheHead):
    pass


@breaks("test_of_two_handles_the_slower_is_refused")
class TrustsItsOwnHead(GoodLog):
    """Compares with the head it remembers: right for one handle, and for two no comparison at all."""

    mine = None

    def append(self, bodies, *, after, at):
        head = len(self._rows)
        if self.mine == after and after < head:
            after = head
        entries = super().append(bodies, after=after, at=at)
        self.mine = after + len(entries)
        return entries


@breaks("test_sessions_do_not_see_each_other")
class MergesSessions(GoodLog):
    def shelf_key(self):
        return self.tenant


@breaks("test_sessions_do_not_see_each_other")
class FoldsCase(GoodLog):
    def shelf_key(self):
        return (self.tenant, self.session.casefold())


@breaks("test_sessions_do_not_see_each_other", "test_tenants_do_not_see_each_other")
class CutsLongNames(GoodLog):
    def shelf_key(self):
        return (self.tenant[:200], self.session[:200])


@breaks("test_sessions_do_not_see_each_other")
class MakesFileNames(GoodLog):
    def shelf_key(self):
        return (self.tenant, "".join(each for each in self.session if each.isalnum() or each in "/._% -"))


@breaks("test_tenants_do_not_see_each_other")
class MergesTenants(GoodLog):
    def shelf_key(self):
        return self.session


@pytest.mark.parametrize("name", TESTS)
def test_a_good_log_passes(name):
    assert outcome(Suite, name, GoodLog) == "passed"


@pytest.mark.parametrize(
    ("log", "name"),
    [(log, name) for log, names in BROKEN.items() for name in names],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_broken_log_fails_the_test_that_names_its_fault(log, name):
    assert outcome(Suite, name, log) == "failed"


def test_every_test_is_needed():
    assert set(TESTS) == {name for names in BROKEN.values() for name in names}


def test_what_a_log_cannot_do_is_skipped_with_its_declaration():
    class Limited(Suite):
        durable = raw = False

    # The others ask for neither, and run as those of the good log do.
    asking = [name for name in TESTS if "require(" in inspect.getsource(getattr(Suite, name))]
    outcomes = [outcome(Limited, name, GoodLog) for name in asking]
    assert outcomes.count("Limited declares durable = False") == 3
    assert outcomes.count("Limited declares raw = False") == 2
    assert len(outcomes) == 5


def test_a_log_without_raw_access_must_say_so():
    for name in ("test_verify_names_the_entry_that_was_changed", "test_an_image_or_a_large_text_is_stored_once"):
        assert outcome(LogTests, name, GoodLog) == "failed"
