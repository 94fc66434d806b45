# debian: python3-levenshtein
import Levenshtein

assert Levenshtein.distance("kitten", "sitting") == 3
assert round(Levenshtein.jaro_winkler("MARTHA", "MARHTA"), 3) == 0.961
assert Levenshtein.apply_edit(Levenshtein.editops("ab", "bc"), "ab", "bc") == "bc"
