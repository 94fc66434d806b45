"""count.py KIND FILE N [MODE]: adds one to the counter in the database FILE N times, each in a transaction of its
own that reads before it writes, or none if it does not get the database; prints the number added.

With N = 0: makes the database.  With N = -1: checks its integrity, and prints the counter."""

import contextlib
import errno
import fcntl
import sys
import threading
import time

KIND, FILE, N = sys.argv[1], sys.argv[2], int(sys.argv[3])
MODE = sys.argv[4] if len(sys.argv) > 4 else "delete"
THREADS = 2


class Sql:
    """SQLite; each thread has a connection."""

    def __init__(self):
        self.db = self.connect()

    def connect(self):
        raise NotImplementedError

    def query(self, sql):
        raise NotImplementedError

    def make(self):
        self.query("pragma journal_mode=" + MODE)
        self.query("create table t(v)")
        self.query("insert into t values(0)")

    def check(self):
        assert self.query("pragma integrity_check")[0][0] == "ok"
        return self.query("select v from t")[0][0]

    def add(self):
        self.query("begin immediate")
        v = self.query("select v from t")[0][0]
        self.query(f"update t set v = {v + 1}")
        self.query("commit")


class Apsw(Sql):
    def connect(self):
        import apsw

        db = apsw.Connection(FILE)
        db.set_busy_timeout(600000)
        db.execute("pragma synchronous=off")
        return db

    def query(self, sql):
        return list(self.db.execute(sql))

    def close(self):
        self.db.close()


class Sqlite3(Sql):
    module = "sqlite3"

    def connect(self):
        db = __import__(self.module).dbapi2.connect(FILE, timeout=600, isolation_level=None)
        db.execute("pragma synchronous=off")
        return db

    def query(self, sql):
        return self.db.execute(sql).fetchall()

    def close(self):
        self.db.close()


class Pysqlite3(Sqlite3):
    module = "pysqlite3"


class Lmdb:
    env = None
    lock = threading.Lock()

    def __init__(self):
        import lmdb

        # One process must not open it twice.
        with Lmdb.lock:
            Lmdb.env = Lmdb.env or lmdb.open(FILE, map_size=1 << 24, sync=False)

    def make(self):
        with self.env.begin(write=True) as t:
            t.put(b"v", b"0")

    def check(self):
        self.env.reader_check()
        with self.env.begin() as t:
            return int(t.get(b"v"))

    def add(self):
        with self.env.begin(write=True) as t:
            t.put(b"v", b"%d" % (int(t.get(b"v")) + 1))

    def close(self):
        pass


class Portalocker:
    """A file under flock, or under record locks as Python's fcntl takes them."""

    def lock(self, f):
        import portalocker

        portalocker.lock(f, portalocker.LOCK_EX)

    def make(self):
        with open(FILE, "w", encoding="ascii") as f:
            f.write("0")

    def check(self):
        with open(FILE, encoding="ascii") as f:
            return int(f.read())

    def add(self):
        with open(FILE, "r+", encoding="ascii") as f:
            self.lock(f)
            v = int(f.read())
            f.seek(0)
            f.write(str(v + 1))

    def close(self):
        pass


class Lockf(Portalocker):
    def lock(self, f):
        fcntl.lockf(f, fcntl.LOCK_EX)


# Threads of one process share its record locks.
SINGLE = ("lockf",)


class Exclusive:
    """A database that one process opens at a time: all of a run's additions, or none."""

    def make(self):
        self.open()
        self.put(0)
        self.shut()

    def check(self):
        self.open()
        v = self.get()
        self.shut()
        return v

    def open_in_turn(self):
        end = time.monotonic() + 600
        while True:
            try:
                self.open()
                return
            except Exception as e:
                if time.monotonic() > end or "lock" not in str(e).lower() and getattr(e, "errno", 0) != errno.EAGAIN:
                    raise
                time.sleep(0.001)

    def add(self):
        self.open_in_turn()
        self.put(self.get() + 1)
        self.shut()

    def close(self):
        pass


class Duckdb(Exclusive):
    """Keeps the database for the whole run: processes that open and close it in turn lose updates, too."""

    db = None

    def add(self):
        if not self.db:
            self.open_in_turn()
        self.put(self.get() + 1)

    def close(self):
        if self.db:
            self.shut()

    def open(self):
        import duckdb

        self.db = duckdb.connect(FILE, config={"threads": 1})
        self.db.execute("create table if not exists t(v integer)")

    def get(self):
        return self.db.execute("select max(v) from t").fetchone()[0]

    def put(self, v):
        self.db.execute("begin")
        self.db.execute("delete from t")
        self.db.execute(f"insert into t values({v})")
        self.db.execute("commit")

    def shut(self):
        self.db.close()


class Plyvel(Exclusive):
    def open(self):
        import plyvel

        self.db = plyvel.DB(FILE, create_if_missing=True)

    def get(self):
        return int(self.db.get(b"v"))

    def put(self, v):
        self.db.put(b"v", b"%d" % v)

    def shut(self):
        self.db.close()


class H5py(Exclusive):
    def open(self):
        import h5py

        self.db = h5py.File(FILE, "a")

    def get(self):
        return int(self.db.attrs["v"])

    def put(self, v):
        self.db.attrs["v"] = v

    def shut(self):
        self.db.close()


class Gdbm(Exclusive):
    def open(self):
        import dbm.gnu

        try:
            self.db = dbm.gnu.open(FILE, "c")
        except dbm.gnu.error as e:
            raise OSError(errno.EAGAIN, str(e)) from e

    def get(self):
        return int(self.db["v"])

    def put(self, v):
        self.db["v"] = str(v)

    def shut(self):
        self.db.close()


def work(make, n, added):
    db = make()
    for _ in range(n):
        db.add()
        added.append(1)
    db.close()


def main():
    make = globals()[KIND.capitalize()]
    if N <= 0:
        db = make()
        if N == 0:
            db.make()
        else:
            print(db.check())
        db.close()
        return
    # Those that open exclusively do so once for all threads of a process.
    single = KIND in SINGLE or issubclass(make, Exclusive)
    added = []
    threads = [threading.Thread(target=work, args=(make, N // (1 if single else THREADS), added))
               for _ in range(1 if single else THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    with contextlib.suppress(BrokenPipeError):
        print(len(added))
    sys.exit(len(added) != N)


main()
