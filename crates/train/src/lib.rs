//! Corpora in, a model directory out.
