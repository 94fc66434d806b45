# debian: python3-apt
import tempfile

import apt_pkg

apt_pkg.init_config()
apt_pkg.init_system()
assert apt_pkg.version_compare("1.0~rc1", "1.0") < 0 < apt_pkg.version_compare("2:1", "3")
assert apt_pkg.parse_depends("a (>= 1), b | c")[1][1][0] == "c"
with tempfile.NamedTemporaryFile("w+") as f:
    f.write("Package: a\nVersion: 1\n\nPackage: b\nVersion: 2\n")
    f.flush()
    with apt_pkg.TagFile(f.name) as tags:
        assert [t["Package"] + t["Version"] for t in tags] == ["a1", "b2"]
