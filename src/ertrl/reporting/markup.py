"""HTML that escapes by default: only what this module built is taken as markup."""

from html import escape

VOID = frozenset({"br", "hr", "img", "meta"})


class Markup(str):
    """Text that is already HTML."""


Content = object
"""Markup is taken as it is, a list is joined, None is nothing, all else is escaped text."""


def text(content: Content) -> Markup:
    """Any content as HTML."""
    if isinstance(content, Markup):
        return content
    if content is None:
        return Markup("")
    if isinstance(content, (list, tuple)):
        return Markup("".join(text(c) for c in content))
    return Markup(escape(str(content)))


def tag(name: str, *content: Content, **attributes: object) -> Markup:
    """An element. `class_` is class, `data_x` is data-x; None leaves an attribute out."""
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            plain = key.rstrip("_").replace("_", "-")
            parts.append(f'{plain}="{escape(str(value))}"')
    opening = f"<{' '.join(parts)}>"
    return Markup(opening if name in VOID else f"{opening}{text(content)}</{name}>")


def paragraphs(*content: Content) -> Markup:
    """Each in a <p> of its own."""
    return Markup("".join(tag("p", c) for c in content))
