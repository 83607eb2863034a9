"""Amazon Bedrock's Converse API."""

from pagein.formats.bedrock.wire import Bedrock

__all__ = ["Bedrock"]
