# debian: python3-libxml2
import libxml2

document = libxml2.parseDoc("<r><i k='a'>1</i><i k='b'>2</i></r>")
context = document.xpathNewContext()
assert context.xpathEval("sum(//i)") == 3
assert [n.content for n in context.xpathEval("//i[@k='b']")] == ["2"]
root = document.getRootElement()
root.newChild(None, "j", "x")
assert "<j>x</j>" in document.serialize()
context.xpathFreeContext()
document.freeDoc()
