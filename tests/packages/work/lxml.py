# debian: python3-lxml
# pypi: lxml
from lxml import etree, html

root = etree.fromstring("<r><i k='a'>1</i><i k='b'>2</i><!-- c --></r>")
assert root.xpath("string(//i[@k='b'])") == "2" and root.xpath("count(i)") == 2
style = etree.XSLT(etree.XML("""<x:stylesheet version="1.0" xmlns:x="http://www.w3.org/1999/XSL/Transform">
<x:template match="/"><o><x:value-of select="sum(//i)"/></o></x:template></x:stylesheet>"""))
assert style(root).getroot().text == "3"
schema = etree.RelaxNG(etree.XML("""<element name="r" xmlns="http://relaxng.org/ns/structure/1.0">
<zeroOrMore><element name="i"><attribute name="k"/><text/></element></zeroOrMore></element>"""))
assert schema.validate(root)
assert html.fromstring("<p>a<b>c").text_content() == "ac"
