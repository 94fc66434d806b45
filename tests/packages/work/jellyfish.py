# debian: python3-jellyfish
import jellyfish
from jellyfish import cjellyfish

assert jellyfish.levenshtein_distance is cjellyfish.levenshtein_distance
assert jellyfish.levenshtein_distance("kitten", "sitting") == 3
assert jellyfish.soundex("Robert") == "R163" and jellyfish.metaphone("night") == "NT"
