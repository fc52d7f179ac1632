//! Tests of the shorten decoder.
