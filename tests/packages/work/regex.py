# debian: python3-regex
# pypi: regex
import regex

assert regex.findall(r"\p{Lu}\w+", "Ärger und Zorn") == ["Ärger", "Zorn"]
assert regex.fullmatch(r"(?:isolate){e<=2}", "isolte")
assert regex.match(r"(?P<n>\((?:[^()]|(?&n))*\))", "(a(b)(c(d)))x").group() == "(a(b)(c(d)))"
