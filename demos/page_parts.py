"""What the pages of the site have in common: `filled` puts it in place of the lines `<!-- head -->` and `<!-- opening -->` of a page,
and in that of `<!-- picture: NAME -->` a picture of the gallery."""

from __future__ import annotations

import re
from typing import Final

from kept import HERE

PAGES: Final = {
    "mnist/": "Digits",
    "train/": "Training",
    "classify/": "Photos",
    "detect/": "Faces",
    "cutout/": "Cutouts",
    "hands/": "Hands",
    "ocr/": "Text",
    "search/": "Search",
    "sounds/": "Sounds",
    "clean/": "Clean",
    "speech/": "Speech",
    "translate/": "Translate",
    "chat/": "Chat",
    "write/": "Write",
    "tune/": "Tune",
    "remote/": "Remote",
}
"""The folder of a page ↦ its name in the navigation."""
PARTS: Final = {"#demos": "Demos", "#browser": "This browser", "#benchmark": "Benchmark", "#python": "Python"}
"""The parts of the front page. Its navigation leads to these: its gallery shows all pages."""
FRONT: Final = "index.html"
HEAD: Final = (
    '<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">',
    '<meta name="color-scheme" content="light dark">',
    '<link rel="stylesheet" href="{root}style.css">',
    '<script type="module" src="{root}front-offline.js"></script>',
)
DEMO_HEAD: Final = ('<link rel="icon" href="data:,">', '<link rel="stylesheet" href="{root}shared/demo.css">')
"""What the front page has of its own."""
BACK: Final = '<a class="quiet" href="../">Singe</a>'
OFFLINE: Final = '<script type="module" src="../front-offline.js"></script>'
"""What a page of a bundle has of the site: the way back, and what keeps it for a visit without a network."""
MARK: Final = re.compile(r"^( *)<!-- (head|opening) -->\n", re.M)

PICTURE: Final = re.compile(r"^( *)<!-- picture: ([a-z]+) -->\n", re.M)


def filled(page: str, text: str) -> str:
    """A page's text with the common head, and the header with its navigation. page: its path in the
    site."""
    root = "../" * page.count("/")
    lines = {"head": (*HEAD, *(() if page == FRONT else DEMO_HEAD)), "opening": _opening(page)}

    def common(mark: re.Match[str]) -> str:
        return "".join(f"{mark[1]}{line}\n" for line in lines[mark[2]]).replace("{root}", root)

    return PICTURE.sub(lambda mark: _picture(mark[1], mark[2]), MARK.sub(common, text))


def _picture(space: str, name: str) -> str:
    """A picture of the gallery: its drawing, over its photo if it has one."""
    photo = f"gallery/{name}.webp"
    beneath = f'<img src="{photo}" alt="" width="560" height="340" loading="lazy" decoding="async">'
    drawing = (HERE / "gallery" / f"{name}.svg").read_text("utf-8").strip()
    parts = [*([beneath] if (HERE / "front" / photo).is_file() else []), *drawing.splitlines()]
    inside = "".join(f"{space}  {part}\n" for part in parts)
    return f'{space}<div class="plate">\n{inside}{space}</div>\n'


def _opening(page: str) -> tuple[str, ...]:
    here = ' aria-current="page"'
    targets = {**(PARTS if page == FRONT else PAGES), "docs/index.html": "Docs"}
    links = [
        f'    <a href="{"" if to in PARTS else "{root}"}{to}"{here if f"{to}index.html" == page else ""}>{name}</a>'
        for to, name in targets.items()
    ]
    brand = f'href="./"{here}' if page == FRONT else 'href="{root}"'
    return (
        '<a class="skip" href="#main">Skip to the content</a>',
        '<header class="site">',
        f'  <a class="brand" {brand}>Singe</a>',
        '  <nav aria-label="Site">',
        *links,
        "  </nav>",
        "</header>",
    )
