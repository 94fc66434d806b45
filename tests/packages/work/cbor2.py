# debian: python3-cbor2
import datetime

import cbor2
import _cbor2

data = {"a": [1, -2, 1.5, None, b"\0"], "t": datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc), "n": 2**70}
assert cbor2.loads(cbor2.dumps(data)) == data and cbor2.dumps is _cbor2.dumps
assert cbor2.loads(bytes.fromhex("9f0102ff")) == [1, 2]
