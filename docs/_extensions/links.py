"""Links of the pages that lead out of docs/: to the README, which is the first page, or to a source."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

README = "../README.md"


def resolve(
    app: Sphinx, env: BuildEnvironment, node: nodes.Element, content: nodes.Element
) -> nodes.Node | None:
    """Resolves `node` if it names a file of the repository that is no page."""
    target = str(node.get("reftarget", ""))
    if target in (README, "README.md"):
        return nodes.reference(
            "", "", content, refuri=app.builder.get_relative_uri(env.docname, "index")
        )
    root = Path(app.srcdir).parent
    inside = (root / target) if env.docname == "index" else (Path(app.srcdir) / target)
    return content if inside.exists() else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True}
