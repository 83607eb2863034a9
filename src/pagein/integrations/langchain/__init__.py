"""pagein in a LangChain agent: one middleware. ``pip install "pagein[langchain]"``."""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes

if TYPE_CHECKING:
    from pagein.integrations.langchain.middleware import PageinMiddleware, to_langchain

__all__ = ["PageinMiddleware", "to_langchain"]

__getattr__ = lazy_attributes(__name__, dict.fromkeys(__all__, "pagein.integrations.langchain.middleware"))
