# debian: python3-yarl
# pypi: yarl
from yarl import URL, _quoting_c

url = URL("http://h/a b?q=ä") / "c" % {"x": "1 2"}
assert str(url) == "http://h/a%20b/c?q=%C3%A4&x=1+2" or url.query["x"] == "1 2"
assert URL("http://h/a/b").join(URL("../c")).path == "/c" and _quoting_c._Quoter()("ä") == "%C3%A4"
