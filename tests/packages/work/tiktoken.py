# pypi: tiktoken
import tiktoken

ranks = {bytes([i]): i for i in range(256)}
ranks.update({b"ab": 256, b"abc": 257})
coder = tiktoken.Encoding("tiny", pat_str=r"\w+|\s+", mergeable_ranks=ranks, special_tokens={"<end>": 258})
assert coder.encode("abcab a<end>", allowed_special="all") == [257, 256, 32, 97, 258]
assert coder.decode([257, 256]) == "abcab"
