# debian: python3-bsddb3
import os
import tempfile

from bsddb3 import db

with tempfile.TemporaryDirectory() as folder:
    d = db.DB()
    d.open(os.path.join(folder, "x"), dbtype=db.DB_BTREE, flags=db.DB_CREATE)
    for i in range(300):
        d.put(b"%04d" % i, b"%d" % (i * i))
    cursor = d.cursor()
    assert cursor.set_range(b"0100") == (b"0100", b"10000") and cursor.next()[0] == b"0101"
    cursor.close()
    assert d.get(b"0012") == b"144" and d.get(b"x") is None
    d.close()
