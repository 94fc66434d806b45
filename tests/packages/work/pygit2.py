# debian: python3-pygit2
import tempfile

import pygit2

with tempfile.TemporaryDirectory() as folder:
    repository = pygit2.init_repository(folder, True)
    blob = repository.create_blob(b"content")
    builder = repository.TreeBuilder()
    builder.insert("file", blob, pygit2.GIT_FILEMODE_BLOB)
    who = pygit2.Signature("Name", "name@example.org", 0, 0)
    commit = repository.create_commit("refs/heads/main", who, who, "subject", builder.write(), [])
    assert str(blob) == "6b584e8ece562ebffc15d38808cd6b98fc3d97ea"
    assert repository[repository[commit].tree["file"].id].data == b"content"
    assert [c.message for c in repository.walk(commit)] == ["subject"]
    repository.free()
