//! Log-probabilities in, labels, words and scores out.
