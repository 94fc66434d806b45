# debian: python3-pylibacl
import os
import tempfile

import posix1e

acl = posix1e.ACL(text="u::rw-,g::r--,o::---")
assert acl.valid() and sorted(e.tag_type for e in acl) == sorted(
    [posix1e.ACL_USER_OBJ, posix1e.ACL_GROUP_OBJ, posix1e.ACL_OTHER]
)
with tempfile.NamedTemporaryFile() as f:
    os.chmod(f.name, 0o640)
    assert posix1e.ACL(file=f.name) == acl
    posix1e.ACL(text="u::r--,g::---,o::---").applyto(f.name)
    assert os.stat(f.name).st_mode & 0o777 == 0o400
