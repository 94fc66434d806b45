"""What is on disk after a command, so that tests can compare it."""

import hashlib
import json
import os

# A copy's hash is recorded once another process uses it; `verify` compares the bytes themselves.
VOLATILE = ("mtime_ns", "copy_mtime_ns", "copy_ctime_ns", "copy_inode", "copy_sha256", "boot", "resolution")


def settle(value):
    """What of a manifest is the same whenever it is made."""
    if isinstance(value, dict):
        return {k: settle(v) for k, v in value.items() if k not in VOLATILE}
    if isinstance(value, list):
        return [settle(v) for v in value]
    return value


def manifest(folder):
    try:
        with open(folder + "/manifest.json", encoding="utf-8") as f:
            return settle(json.load(f))
    except FileNotFoundError:
        return None


def files_below(*tops):
    return [os.path.join(folder, name) for top in tops for folder, _, names in os.walk(top) for name in names]


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def originals():
    """The sources of make_faults_tree."""
    return {path: (digest(path), os.stat(path).st_mtime_ns) for path in files_below("tree", "apidir")}


def contents(top):
    """All files of contexts: the copies' bytes, and manifests but for times and identities."""
    return {os.path.relpath(path, top):
            manifest(os.path.dirname(path)) if path.endswith("/manifest.json") else digest(path)
            for path in files_below(top)}
