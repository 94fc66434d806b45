# debian: python3-lmdb
import tempfile

import lmdb

with tempfile.TemporaryDirectory() as folder:
    with lmdb.open(folder, map_size=1 << 24) as db:
        with db.begin(write=True) as t:
            for i in range(500):
                t.put(b"%05d" % i, b"%d" % (i * i))
        with db.begin() as t:
            assert t.get(b"00012") == b"144" and t.stat()["entries"] == 500
            cursor = t.cursor()
            assert cursor.set_range(b"00100") and cursor.item() == (b"00100", b"10000")
        try:
            with db.begin() as t:
                t.put(b"a", b"b")
        except lmdb.ReadonlyError:
            pass
        else:
            raise AssertionError("written in a reader")
