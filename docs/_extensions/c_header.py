"""The directive `c-header`: the declarations of a public header, each with its contract.

What it knows of the headers is what scripts/man3.awk knows: the first comment is about the whole; a section starts
with a line of dashes; a comment before a blank line stands for itself, and any other is about the declaration that
follows; one at the end of a line is about that line.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

TITLE = re.compile(r"/\* -+ (.*?) -+ \*/")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
SKIPPED = re.compile(
    r"#(ifndef|ifdef|if|endif|else|include)\b.*|#define (EXTISOLATE\w*|EXTI_API)\b.*|\}|extern \"C\" \{"
)
WORDS = re.compile(r"`([^`]+)`|\b(extip?y?_[a-z_0-9]+)(\(\))?|\b(EXTI(?:PY)?_[A-Z0-9_]+)\b|([*_|\\<>])")


def bare(comment: str) -> str:
    """Gives the text of a comment."""
    text = re.sub(r"^/\* ?| *\*/$", "", comment)
    return re.sub(r"\n *\* ?", "\n", text)


def split(header: str) -> Iterator[tuple[str, str]]:
    """Splits a header into ("title" | "comment" | "declaration", text)."""
    lines = iter(header.splitlines())
    for line in lines:
        if not line.strip() or SKIPPED.fullmatch(line.strip()):
            yield "blank", ""
        elif title := TITLE.fullmatch(line):
            yield "title", title[1]
        elif line.startswith("/*"):
            while not line.endswith("*/"):
                line += "\n" + next(lines)
            yield "comment", bare(line)
        else:
            while not is_whole(line):
                line += "\n" + next(lines)
            yield "declaration", line


def is_whole(text: str) -> bool:
    """Whether a declaration is complete, with the comment at its end."""
    code = COMMENT.sub("", text)
    if "/*" in code or code.count("{") != code.count("}"):
        return False
    return code.startswith("#define") or code.rstrip().endswith(";")


def words(text: str, known: dict[str, str]) -> str:
    """Marks a paragraph up."""

    def mark(m: re.Match[str]) -> str:
        if m[1]:
            return f"``{m[1]}``"
        name = m[2] or m[4]
        if name:
            return f":c:{known[name]}:`{name}`" if name in known else f"``{name}``"
        return "\\" + m[5]

    return WORDS.sub(mark, text)


def prose(text: str, known: dict[str, str]) -> list[str]:
    """Gives a comment as reStructuredText; what is set in is shown as it is."""
    out: list[str] = []
    for paragraph in re.split(r"\n\n+", text.strip("\n")):
        lines = paragraph.split("\n")
        shown = [re.match(r"  +\S", line) is not None for line in lines]
        for i, line in enumerate(lines):
            if shown[i] and not (i and shown[i - 1]):
                out += ["", "::", ""]
            if not shown[i] and i and shown[i - 1]:
                out.append("")
            out.append(line if shown[i] else words(line, known))
        out.append("")
    return out


def indented(lines: list[str]) -> list[str]:
    return [f"   {line}" if line else "" for line in lines]


def code_of(text: str) -> tuple[str, str]:
    """Splits a line of code from the comment at its end."""
    code = " ".join(COMMENT.sub("", text).split())
    note = " ".join(bare(c) for c in COMMENT.findall(text))
    return code, note


def declarators(declaration: str) -> list[str]:
    """Splits `char *a, *b` into `char *a` and `char *b`."""
    first, *others = declaration.split(", ") if "(" not in declaration else [declaration]
    kind = re.sub(r"\**\w+$", "", first)
    return [first, *(kind + other for other in others)]


def members(body: str, is_enum: bool) -> list[tuple[str, str]]:
    """Gives the members of a struct or an enum: (declaration, what is said of it)."""
    part = r"/\*.*?\*/|[^,/]+(?:,|(?=/\*)|$)" if is_enum else r"/\*.*?\*/|[^;/]+;"
    found: list[tuple[str, str]] = []
    said = ""
    for m in re.finditer(part, body, re.DOTALL):
        text = m[0].strip(" \n;,")
        if not text:
            continue
        if not text.startswith("/*"):
            found += [(d, said) for d in declarators(" ".join(text.split()))]
            said = ""
        elif body[: m.start()].rsplit("\n", 1)[-1].strip():
            found[-1] = (found[-1][0], f"{found[-1][1]} {bare(text)}".strip())
        else:
            said = bare(text)
    return found


def kind_of(declaration: str) -> tuple[str, str]:
    """Gives a declaration's kind, as the C domain names it, and its name."""
    code, _ = code_of(declaration)
    if m := re.match(r"#define (\w+)", code):
        return "macro", m[1]
    if m := re.match(r"(struct|enum) (\w+)( \{|;)", code):
        return m[1], m[2]
    if m := re.match(r"typedef .*\(\*(\w+)\)", code) or re.match(r"typedef [^(]* (\w+);", code):
        return "type", m[1]
    if m := re.search(r"(\w+)\(", code):
        return "func", m[1]
    raise ValueError(f"what is this? {code}")


def names(header: str) -> dict[str, str]:
    """Gives the kind of each name that the header declares."""
    known: dict[str, str] = {}
    for kind, text in split(header):
        if kind != "declaration":
            continue
        what, name = kind_of(text)
        if known.get(name) != "func":
            known[name] = what
        if what == "enum":
            known |= {d.split(" =")[0]: "enumerator" for d, _ in members(inside(text), True)}
    return known


def inside(text: str) -> str:
    """Gives what is between a declaration's braces."""
    return text[text.index("{") + 1 : text.rindex("}")]


def directive(head: str, said: str, known: dict[str, str]) -> list[str]:
    """Gives a directive of the C domain with a contract in it."""
    return [f".. c:{head}", "", *indented(prose(said, known))]


def defined(what: str, name: str, body: str, said: str, known: dict[str, str]) -> list[str]:
    """Gives a struct or an enum with its members."""
    inner = {"struct": "member", "enum": "enumerator"}[what]
    lines = directive(f"{what}:: {name}", said, known)
    for declaration, note in members(body, what == "enum"):
        lines += indented(directive(f"{inner}:: {declaration}", note, known))
    if known[name] != "func":
        return lines
    # In C a struct and a function may have one name; in the domain only in different namespaces.
    return [".. c:namespace-push:: tags", "", *lines, ".. c:namespace-pop::", ""]


def declared(text: str, said: str, known: dict[str, str]) -> list[str]:
    """Gives one declaration with its contract."""
    what, name = kind_of(text)
    if what in ("struct", "enum"):
        return defined(what, name, inside(text) if "{" in text else "", said, known)
    code, note = code_of(text)
    said = "\n\n".join(filter(None, (said, note)))
    if what == "func":
        return directive("function:: " + re.sub(r"^EXTI_API |;$", "", code), said, known)
    if what == "type":
        return directive("type:: " + re.sub(r"^typedef |;$", "", code), said, known)
    return directive(f"macro:: {name}", said, known)


def is_forward(text: str, header: str) -> bool:
    """Whether a declaration only announces a struct that is defined further down."""
    what, name = kind_of(text)
    return what == "struct" and "{" not in text and f"struct {name} {{" in header


def document(header: str, known: dict[str, str]) -> Iterator[str]:
    """Gives the header as reStructuredText."""
    items = list(split(header))
    first = next(i for i, (kind, _) in enumerate(items) if kind == "comment")
    yield from prose(items[first][1].split("\n", 1)[1], known)
    said = ""
    for kind, text in items[first + 1 :]:
        if kind == "declaration" and is_forward(text, header):
            continue
        if kind == "declaration":
            yield from declared(text, said, known)
        elif said:
            yield from prose(said, known)
        said = text if kind == "comment" else ""
        if kind == "title":
            title = text[0].upper() + text[1:]
            yield from (title, "-" * len(title), "")


class CHeader(SphinxDirective):
    """Documents the header whose path, from the root of the repository, is the argument."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir).parent
        path = root / self.arguments[0]
        self.env.note_dependency(str(path))
        known: dict[str, str] = {}
        for each in sorted((root / "include").rglob("*.h")):
            known |= names(each.read_text())
        lines = document(path.read_text(), known)
        node = nodes.section(document=self.state.document)
        nested_parse_with_titles(self.state, StringList(list(lines), str(path)), node)
        return node.children


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("c-header", CHeader)
    return {"parallel_read_safe": True}
