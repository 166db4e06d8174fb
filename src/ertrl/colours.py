"""Every colour of figures and pages, once."""

COLOURS = {
    "ink": ("#1d2433", "#e6e9f0"),
    "muted": ("#667089", "#98a2b8"),
    "line": ("#dfe3ea", "#333b4d"),
    "paper": ("#fffffe", "#171c27"),
    "wash": ("#f1f3f7", "#202736"),
    "c0": ("#0072b2", "#4aa8e8"),
    "c1": ("#d55e00", "#ff8a45"),
    "c2": ("#009e73", "#2fc79a"),
    "c3": ("#cc79a7", "#e29cc4"),
    "c4": ("#e69f00", "#f2b93b"),
    "c5": ("#56b4e9", "#90d2f6"),
    "c6": ("#7f6bc9", "#a99bea"),
    "c7": ("#8c6d31", "#c4a462"),
    "c8": ("#7b8794", "#a7b2bf"),
    "c9": ("#b0316a", "#e36ba0"),
    "c10": ("#5f7a1f", "#a3c25a"),
    "c11": ("#20a4b4", "#5fd0de"),
    "page": ("#f7f8fa", "#10141c"),
    "accent": ("#0072b2", "#62b5f0"),
    "warn": ("#8a5a00", "#f2c266"),
    "warn-wash": ("#fff6e0", "#2b2415"),
}
"""Name -> colour in light and in dark. Figures are drawn in light; a page replaces each colour by
the first name that has it, so that a figure follows the reader's colour scheme."""

PALETTE = tuple(light for name, (light, _) in COLOURS.items() if name[1:].isdigit())
"""Of methods: Okabe and Ito's, safe for people with colour-vision deficiencies, then others."""

COLOUR_RING = ("#1b4f9c", "#6db5ee", "#e8b53c", "#8f4a12", "#1b4f9c")
"""For angles, whose ends meet: a way round in light and dark, blue and yellow, which people who
confuse red and green tell apart as well."""
