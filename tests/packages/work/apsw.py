# debian: python3-apsw
import apsw

db = apsw.Connection(":memory:")
db.createscalarfunction("twice", lambda x: 2 * x, 1)
cursor = db.cursor()
cursor.execute("create table t(x); insert into t values(?); insert into t values(?)", (3, 4))
assert list(cursor.execute("select twice(x) from t order by x")) == [(6,), (8,)]
copy = apsw.Connection(":memory:")
with copy.backup("main", db, "main") as backup:
    backup.step()
assert list(copy.cursor().execute("select count(*) from t")) == [(2,)]
try:
    cursor.execute("selec 1")
except apsw.SQLError:
    pass
else:
    raise AssertionError("bad SQL was accepted")
