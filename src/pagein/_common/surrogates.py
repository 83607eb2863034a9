"""Lone surrogates: halves of characters, which a str and JSON may have and UTF-8 may not."""


def is_utf8(text: str) -> bool:
    """True for a text without lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate by U+FFFD, and join each pair of surrogates."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
