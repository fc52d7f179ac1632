//! The networks: configuration, layers, training step, streams and weights files.
#![warn(clippy::too_many_arguments)]

pub mod config;
pub mod frames;
pub mod inference;
pub mod layers;
pub mod network;
pub mod optim;
pub mod params;
pub mod random;
pub mod stream;
pub mod summary;
pub mod weights;
