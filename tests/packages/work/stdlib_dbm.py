# debian: python3-gdbm libpython3-stdlib
import dbm.gnu
import dbm.ndbm
import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    for kind in dbm.gnu, dbm.ndbm:
        path = os.path.join(folder, kind.__name__)
        with kind.open(path, "n") as db:
            for i in range(200):
                db[str(i)] = str(i * i)
        with kind.open(path, "r") as db:
            assert len(db.keys()) == 200 and db["12"] == b"144"
