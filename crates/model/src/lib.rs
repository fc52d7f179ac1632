//! Feature frames in, log-probabilities out.
