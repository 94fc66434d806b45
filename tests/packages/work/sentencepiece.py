# debian: python3-sentencepiece
import io

import sentencepiece

text = ["the quick brown fox number %d jumps over the lazy dog" % i for i in range(200)]
model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(text), model_writer=model, vocab_size=60, minloglevel=2
)
pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
ids = pieces.encode("the lazy fox")
assert pieces.get_piece_size() == 60 and pieces.decode(ids) == "the lazy fox"
