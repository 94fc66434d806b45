# debian: python3-simplejson
# pypi: simplejson
from decimal import Decimal

import simplejson
from simplejson import decoder, encoder

assert encoder.c_make_encoder and decoder.c_scanstring
data = {"a": [1, None, "\u20ac"], "b": Decimal("1.10")}
assert simplejson.loads(simplejson.dumps(data), use_decimal=True) == data
try:
    simplejson.loads("[1,]x")
except simplejson.JSONDecodeError:
    pass
else:
    raise AssertionError("bad JSON was accepted")
