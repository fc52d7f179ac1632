//! Tests of opening and reading recordings.
