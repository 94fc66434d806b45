# debian: libpython3-stdlib
import os
import sqlite3
import tempfile

with tempfile.TemporaryDirectory() as folder:
    db = sqlite3.connect(os.path.join(folder, "db"))
    db.create_function("twice", 1, lambda x: 2 * x)
    with db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
        db.executemany("INSERT INTO t (name) VALUES (?)", [("n%d" % i,) for i in range(1000)])
    assert db.execute("SELECT sum(twice(id)) FROM t").fetchone() == (1001000,)
    try:
        db.execute("INSERT INTO t (name) VALUES ('n5')")
    except sqlite3.IntegrityError:
        pass
    else:
        raise AssertionError("a second n5 was accepted")
    db.close()
