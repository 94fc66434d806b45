# debian: python3-pymongo-ext python3-bson-ext
# pypi: pymongo
import datetime

import bson
from bson.objectid import ObjectId
from pymongo import MongoClient, message

assert bson.has_c() and message._use_c
data = {"a": [1, 2.5, None], "b": {"c": "d"}, "i": ObjectId(), "t": datetime.datetime(2020, 1, 1)}
assert bson.decode(bson.encode(data)) == data
client = MongoClient("127.0.0.1", 1, connect=False)
assert client["x"]["y"].full_name == "x.y"
client.close()
try:
    bson.decode(b"\5\0\0")
except bson.InvalidBSON:
    pass
else:
    raise AssertionError("damaged data was accepted")
