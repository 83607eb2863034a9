"""Runs a generator that yields what it needs done, in either colour: the flows are written once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

E = TypeVar("E")
T = TypeVar("T")


def drive(flow: Generator[E, Any, T], perform: Callable[[E], Any]) -> T:
    """Run a flow to its end, doing each effect at once; what fails is raised inside, where it was asked for."""
    try:
        effect = next(flow)
        while True:
            try:
                given = perform(effect)
            except BaseException as error:  # noqa: BLE001 - it belongs inside the flow, whatever it is
                effect = flow.throw(error)
            else:
                effect = flow.send(given)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        flow.close()


async def adrive(flow: Generator[E, Any, T], perform: Callable[[E], Awaitable[Any]]) -> T:
    """Run a flow to its end, awaiting each effect; a cancellation is raised where it struck."""
    try:
        effect = next(flow)
        while True:
            try:
                given = await perform(effect)
            except BaseException as error:  # noqa: BLE001 - cancellation too
                effect = flow.throw(error)
            else:
                effect = flow.send(given)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        flow.close()
