//! Feature frames in, log-probabilities out.

pub mod config;
pub mod init;
pub mod optim;
pub mod params;
pub mod random;
pub mod summary;
pub mod weights;
