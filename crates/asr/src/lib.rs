//! The recogniser: one engine for files, streams and evaluation.
