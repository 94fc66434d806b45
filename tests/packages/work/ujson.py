# debian: python3-ujson
# pypi: ujson
import ujson

data = {"a": [1, 2.5, None, True, "\u20ac/"], "b": {"c": -(2**62)}}
assert ujson.loads(ujson.dumps(data)) == data
try:
    ujson.loads("{")
except ValueError:
    pass
else:
    raise AssertionError("bad JSON was accepted")
