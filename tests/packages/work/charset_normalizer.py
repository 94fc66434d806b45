# pypi: charset-normalizer
import charset_normalizer
import charset_normalizer.md

text = "Žluťoučký kůň úpěl ďábelské ódy. " * 20
best = charset_normalizer.from_bytes(text.encode("utf-8")).best()
assert best.encoding == "utf_8" and str(best) == text
assert charset_normalizer.md.__file__.endswith(".so")
