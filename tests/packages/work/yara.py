# debian: python3-yara
import yara

rules = yara.compile(source='rule found { strings: $a = "isolated" nocase $b = { 01 ?? 03 } condition: all of them }')
assert [m.rule for m in rules.match(data=b"..ISOLATED..\x01\x02\x03")] == ["found"]
assert rules.match(data=b"isolated") == []
try:
    yara.compile(source="rule {")
except yara.SyntaxError:
    pass
else:
    raise AssertionError("a bad rule was accepted")
