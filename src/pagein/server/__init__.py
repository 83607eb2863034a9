"""A proxy between agents and their providers: their history goes in whole, a view of it goes out.

naming, runs      whose request it is: a name narrows, content decides
budgets           how much of the window its messages may have
proxy             one request: recorded, viewed, forwarded, relayed, its answer recorded
answers, events   streams of the three protocols
app               who may ask, and where a request goes
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes
from pagein.server.settings import Limits, Mode, ServerSettings

if TYPE_CHECKING:
    from pagein.server.app import ServerApp

__all__ = ["Limits", "Mode", "ServerApp", "ServerSettings"]

__getattr__ = lazy_attributes(__name__, {"ServerApp": "pagein.server.app"}, extra="serve")
