"""A recall before the vectors are made says so, and ``wait`` waits for them."""

import threading

from pagein import AgentMemory


class GatedEmbedder:
    """An embedder that embeds a question at once, and passages once its gate is open."""

    name, dimension = "gated", 2

    def __init__(self):
        self.gate = threading.Event()

    def embed(self, texts):
        """Return a vector for each text, by its length."""
        if list(texts) != ["heron"]:
            assert self.gate.wait(60)
        return [(float(len(text)), 1.0) for text in texts]


def test_the_first_recall_says_that_vectors_are_not_ready_and_wait_waits_for_them():
    embedder = GatedEmbedder()
    memory = AgentMemory.open(":memory:", budget=5_000, embedder=embedder)
    memory.record_messages([{"role": "user", "content": "The heron stands in the reeds."}])
    memory.recall("heron")
    assert any("no vector yet" in line for line in memory.report().problems)
    embedder.gate.set()
    assert memory.wait()
    memory.recall("heron")
    assert not any("no vector yet" in line for line in memory.report().problems)
    memory.close()
