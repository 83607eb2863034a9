"""A run that dies inside its twentieth call. Started by the end-to-end test, in a process of its own."""

import os
import sys

from smolagents_scripted import LookUp, agent_of, called, code

from pagein.integrations.smolagents import PageinMemory


class Deadly(LookUp):
    """Never answers for page 20."""

    def forward(self, page: int) -> str:
        if page == 20:
            os._exit(9)
        return super().forward(page)


def main(kind, path):
    def script(number, messages):
        ask = code(f"print(look_up({number}))")
        return ask if kind == "code" else called((f"c{number}", "look_up", {"page": number}))

    agent = agent_of(kind, script, 4_000, [Deadly()])
    PageinMemory.attach(agent, path, budget=4_000)
    agent.run("Read the report, then say what the vault's word is.")


if __name__ == "__main__":
    main(*sys.argv[1:])
