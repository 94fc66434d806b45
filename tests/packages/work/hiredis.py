# debian: python3-hiredis
import hiredis

reader = hiredis.Reader(encoding="utf-8")
reader.feed(b"*3\r\n:7\r\n$5\r\nhel")
assert reader.gets() is False
reader.feed(b"lo\r\n-ERR bad\r\n")
n, word, error = reader.gets()
assert (n, word) == (7, "hello") and isinstance(error, hiredis.ReplyError)
