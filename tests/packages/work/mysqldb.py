# debian: python3-mysqldb
import MySQLdb
from MySQLdb import _mysql

assert _mysql.escape_string(b"O'Brien") == b"O\\'Brien" and _mysql.get_client_info()
assert _mysql.string_literal("x'") == b"'x\\''"
try:
    MySQLdb.connect(host="127.0.0.1", port=1, connect_timeout=30)
except MySQLdb.OperationalError as error:
    assert 2000 <= error.args[0] < 2100
else:
    raise AssertionError("connected to nothing")
