//! Directories good and bad.
