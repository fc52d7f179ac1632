//! Samples in, feature frames out.
