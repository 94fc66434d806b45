# pypi: pydantic-core
from pydantic_core import SchemaValidator, ValidationError, core_schema as s, from_json

validator = SchemaValidator(s.typed_dict_schema({"n": s.typed_dict_field(s.int_schema(ge=1)), "w": s.typed_dict_field(s.str_schema())}))
assert validator.validate_json('{"n": "5", "w": "x"}') == {"n": 5, "w": "x"}
try:
    validator.validate_python({"n": 0, "w": "x"})
except ValidationError as e:
    assert e.error_count() == 1
else:
    raise AssertionError("0 was accepted")
assert from_json(b"[1, 2.5, null]") == [1, 2.5, None]
