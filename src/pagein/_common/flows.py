"""Flows: generators that yield what they need, such as requests to send, written once and run both sync and async."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar, cast

E = TypeVar("E")
T = TypeVar("T")


def drive(flow: Generator[E, Any, T], perform: Callable[[E], Any]) -> T:
    """Run a flow to its end. An error of an effect is raised inside the flow, at that effect."""
    try:
        effect = next(flow)
        while True:
            try:
                result = perform(effect)
            except BaseException as error:  # noqa: BLE001 - it belongs inside the flow, whatever it is
                effect = flow.throw(error)
            else:
                effect = flow.send(result)
    except StopIteration as end:
        return cast(T, end.value)
    finally:
        flow.close()


async def adrive(flow: Generator[E, Any, T], perform: Callable[[E], Awaitable[Any]]) -> T:
    """Run a flow to its end, awaiting each effect. A cancellation is raised inside the flow, at that effect."""
    try:
        effect = next(flow)
        while True:
            try:
                result = await perform(effect)
            except BaseException as error:  # noqa: BLE001 - cancellation too
                effect = flow.throw(error)
            else:
                effect = flow.send(result)
    except StopIteration as end:
        return cast(T, end.value)
    finally:
        flow.close()
