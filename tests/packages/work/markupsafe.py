# debian: python3-markupsafe
# pypi: MarkupSafe
import markupsafe
from markupsafe import _speedups

assert str(markupsafe.escape("<a href='x'>&")) == "&lt;a href=&#39;x&#39;&gt;&amp;"
assert markupsafe.Markup("<b>%s</b>") % "<" == "<b>&lt;</b>" and "_speedups" in _speedups.__name__
