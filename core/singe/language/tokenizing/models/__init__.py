"""What makes tokens of a piece of text: byte pairs, unigrams, words of BERT."""
