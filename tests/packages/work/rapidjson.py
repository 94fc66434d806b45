# debian: python3-rapidjson
import rapidjson

data = {"a": [1, 2.5, None, True], "b": {"c": "\u00e9"}}
assert rapidjson.loads(rapidjson.dumps(data)) == data
check = rapidjson.Validator('{"type": "object", "required": ["a"]}')
check('{"a": 1}')
try:
    check("{}")
except rapidjson.ValidationError:
    pass
else:
    raise AssertionError("not valid, and not said so")
