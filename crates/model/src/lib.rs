//! Feature frames in, log-probabilities out.

pub mod cnn;
pub mod config;
pub mod frames;
pub mod front_end;
pub mod inference;
pub mod init;
pub mod layers;
pub mod loss;
pub mod lstm;
pub mod network;
pub mod optim;
pub mod params;
pub mod random;
pub mod slicer;
pub mod srf;
pub mod stream;
pub mod summary;
pub mod transformer;
pub mod weights;
