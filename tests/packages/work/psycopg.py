# pypi: psycopg[binary]
import psycopg
from psycopg import pq, sql

assert pq.__impl__ == "binary" and pq.version() >= 100000
assert sql.SQL("select {}").format(sql.Identifier('a"b')).as_string(None) == 'select "a""b"'
assert psycopg.conninfo.conninfo_to_dict("host=a dbname=b") == {"host": "a", "dbname": "b"}
try:
    psycopg.connect("host=127.0.0.1 port=1 connect_timeout=30")
except psycopg.OperationalError as e:
    assert "refused" in str(e)
else:
    raise AssertionError("connected to nothing")
