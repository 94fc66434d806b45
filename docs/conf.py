"""The documentation's site: `make html` builds it of these pages and the public headers."""

import re
import sys
from pathlib import Path

here = Path(__file__).parent
sys.path.insert(0, str(here / "_extensions"))

header = (here / "../include/extisolate.h").read_text()
project = "extisolate"
version = release = ".".join(re.findall(r"#define EXTI_VERSION_\w+ (\d+)", header))
copyright = "the extisolate developers"

extensions = ["c_header", "links", "myst_parser", "sphinx.ext.autodoc"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
myst_heading_anchors = 3
nitpicky = True
nitpick_ignore = [
    ("c:identifier", name)
    for name in ("int32_t", "int64_t", "ptrdiff_t", "size_t", "uint32_t", "uint64_t", "uintptr_t")
]
# Python's own names, whose pages are elsewhere.
nitpick_ignore_regex = [("py:.*", r"(?!extisolate).*")]
exclude_patterns = ["_extensions"]

html_theme = "furo"
html_title = f"extisolate {release}"
html_show_sphinx = False
