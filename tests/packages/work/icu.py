# debian: python3-icu
import icu

collator = icu.Collator.createInstance(icu.Locale("sv"))
assert sorted(["ö", "z", "å", "a"], key=collator.getSortKey) == ["a", "z", "å", "ö"]
assert icu.UnicodeString("straße").toUpper(icu.Locale("de")) == "STRASSE"
words = icu.BreakIterator.createWordInstance(icu.Locale("en"))
words.setText("one two")
assert list(words) == [3, 4, 7]
assert icu.Transliterator.createInstance("Greek-Latin").transliterate("αβ") == "ab"
