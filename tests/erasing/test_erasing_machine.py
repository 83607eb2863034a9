"""Any history, and after every erasing the promise: what was erased is nowhere, and everything else is where it was."""

import random

import pytest

from pagein import ActionStep, AgentMemory, Observation, PlanningStep, TaskStep, ToolCall
from pagein.testing import promises

WORDS = ("look", "fix", "the", "test", "retry", "config", "return", "then", "where", "is")


class Play:
    """A run with one word in each text that no other has."""

    def __init__(self, path, seed):
        self.chance = random.Random(seed)
        self.path, self.made, self.gone = path, {}, set()
        self.count = self.calls = 0
        self.memory = self.open()

    def open(self):
        return AgentMemory.open(self.path, budget=900, user="alice")

    def text(self, lines=1):
        self.count += 1
        word = f"zq{self.count}xw{self.count * 7919 % 9973}"
        said = [" ".join(self.chance.choices(WORDS, k=6)) for _ in range(lines)]
        said.insert(self.chance.randrange(lines + 1), f"{word} {self.chance.choice(WORDS)}")
        return word, "\n".join(said)

    def task(self):
        word, text = self.text()
        self.keep(self.memory.record(TaskStep(text)).last - 1, {word})

    def plan(self):
        word, text = self.text(2)
        self.keep(self.memory.record(PlanningStep(text)).last - 1, {word})

    def turn(self):
        self.calls += 1
        said, asked, seen = self.text(), self.text(), self.text(self.chance.choice((1, 4, 60)))
        call = ToolCall(f"c{self.calls}", "read", f'{{"path": "{asked[0]}"}}')
        at = self.memory.record(ActionStep(said[1], (call,))).last - 1
        self.memory.record(Observation(call.id, seen[1]))
        self.keep(at, {said[0], asked[0], seen[0]})

    def keep(self, position, words):
        self.made[self.memory._runtime.branches.current, position] = words

    def look(self):
        self.memory.to_messages(self.chance.choice(promises.FORMATS))

    def compact(self):
        self.memory.compact()

    def mark(self):
        self.memory.checkpoint(f"mark {self.count}")

    def search(self):
        words = [word for each in self.made.values() for word in each]
        if words:
            query = self.chance.choice(words)
            self.calls += 1
            given = f'{{"query": "{query}"}}'
            self.memory.record(ActionStep(None, (ToolCall(f"c{self.calls}", "recall", given),)))
            self.memory.call_tool("recall", given)
            # What the model looked for it said itself.
            self.made = {place: said - {query} for place, said in self.made.items()}

    def fork(self):
        if len(self.memory.branches()) < 4:
            self.memory.rewind(self.chance.randrange(len(self.log()) + 1))

    def switch(self):
        self.memory.switch(self.chance.choice(self.memory.branches()).name)

    def reopen(self):
        self.memory.close()
        self.memory = self.open()

    def log(self):
        return list(self.memory._runtime.log.read())

    def erase(self):
        current = self.memory._runtime.branches.current
        mine = [place for place in self.made if place[0] == current]
        if not mine:
            return
        place = self.chance.choice(mine)
        words = self.made.pop(place)
        self.memory.erase(place[1])
        self.gone |= words
        self.check()

    def check(self):
        here = self.memory._runtime.branches.current
        for branch in self.memory.branches():
            self.memory.switch(branch.name)
            found = self.memory.verify()
            assert found.ok, found.problems
            given = [str(self.memory.to_messages(format)) for format in promises.FORMATS]
            given += [str(entry.body) for entry in self.log()]
            for word in self.gone:
                assert not any(word in each for each in given), f"{word} is in {branch.name}"
                assert not any(word in hit.text for hit in self.memory.recall(word)), f"{word} is recalled"
        self.memory.switch(here)
        stored = b"".join(each.read_bytes() for each in self.path.parent.glob(self.path.name + "*"))
        for word in self.gone:
            assert word.encode() not in stored, f"{word} is in the file"
        for (branch, position), words in self.made.items():
            if branch == here:
                whole = str(self.memory.expand(position))
                assert all(word in whole for word in words), f"s{position} lost something that was not erased"


@pytest.mark.parametrize("seed", range(4))
def test_what_was_erased_is_nowhere_whatever_was_done(tmp_path, seed):
    play = Play(tmp_path / "run.db", seed)
    moves = [play.task, play.plan, *[play.turn] * 4, play.look, play.look, play.compact, play.mark, play.search]
    moves += [play.fork, play.switch, play.reopen]
    for number in range(36):
        play.chance.choice(moves)()
        if number % 9 == 8:
            play.erase()
    play.memory.close()
    assert play.gone
