# debian: python3-plyvel
import tempfile

import plyvel

with tempfile.TemporaryDirectory() as folder:
    db = plyvel.DB(folder, create_if_missing=True)
    with db.write_batch() as batch:
        for i in range(1000):
            batch.put(b"%05d" % i, b"%d" % (i * i))
    assert db.get(b"00012") == b"144"
    assert [k for k, _ in db.iterator(start=b"00997")] == [b"00997", b"00998", b"00999"]
    db.close()
