# debian: python3-psycopg2
import psycopg2
import psycopg2.extensions as e
from psycopg2.errors import lookup

assert e.adapt("O'Brien").getquoted() == b"'O''Brien'" and e.adapt([1, None]).getquoted() == b"ARRAY[1,NULL]"
assert e.parse_dsn("dbname=a host=b") == {"dbname": "a", "host": "b"}
assert e.make_dsn(host="h", port=1) and lookup("23505").__name__ == "UniqueViolation"
assert psycopg2.BINARY is not None and e.libpq_version() >= 90000
try:
    psycopg2.connect(host="127.0.0.1", port=1, connect_timeout=30)
except psycopg2.OperationalError as error:
    assert "refused" in str(error).lower()
else:
    raise AssertionError("connected to nothing")
