# pypi: orjson
import datetime

import orjson

data = {"a": [1, 2.5, None, True, "\u20ac"], "b": {"c": "d" * 500}}
assert orjson.loads(orjson.dumps(data)) == data
assert orjson.dumps(datetime.datetime(2020, 1, 1)) == b'"2020-01-01T00:00:00"'
try:
    orjson.loads("[1,")
except orjson.JSONDecodeError:
    pass
else:
    raise AssertionError("bad JSON was accepted")
