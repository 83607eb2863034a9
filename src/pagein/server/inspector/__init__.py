"""The inspector: what a model was sent, why, what left and what it cost, in a browser. It only reads the store.

data          runs, requests, steps and searches of a store, as JSON values
app           who may ask, and where a path leads
export        a run as one HTML file
static        the pages: plain ES modules; preact and htm are in ``vendor`` with their licences
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes

if TYPE_CHECKING:
    from pagein.server.inspector.app import InspectorApp, InspectorSettings

__all__ = ["InspectorApp", "InspectorSettings"]

__getattr__ = lazy_attributes(__name__, dict.fromkeys(__all__, "pagein.server.inspector.app"))  # needs the extra serve
