# pypi: tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

tokenizer = Tokenizer(models.BPE(unk_token="?"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
trainer = trainers.BpeTrainer(vocab_size=80, special_tokens=["?"], show_progress=False)
tokenizer.train_from_iterator(["the lazy dog jumps over the lazy fox"] * 20, trainer)
assert tokenizer.encode("the lazy fox").tokens == ["the", "lazy", "fox"]
again = Tokenizer.from_str(tokenizer.to_str())
assert again.encode("lazy").ids == tokenizer.encode("lazy").ids
