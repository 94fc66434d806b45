# debian: python3-pyxattr
import errno
import tempfile

import xattr

with tempfile.NamedTemporaryFile() as f:
    try:
        xattr.set(f.name, "user.colour", b"blue")
    except OSError as e:
        # A file system may have none.
        assert e.errno == errno.ENOTSUP
    else:
        assert xattr.get(f.name, "user.colour") == b"blue"
        assert (b"user.colour", b"blue") in xattr.get_all(f.fileno())
        xattr.remove(f.name, "user.colour")
    try:
        xattr.get(f.name, "user.missing")
    except OSError as e:
        assert e.errno in (errno.ENODATA, errno.ENOTSUP)
    else:
        raise AssertionError("an attribute from nowhere")
