//! Prepares corpora, trains and evaluates models.

pub mod analyze;
pub mod augment;
pub mod builtin;
pub mod corpus;
pub mod draw;
pub mod evaluate;
pub mod events;
pub mod lexicon;
pub mod page;
pub mod recipes;
pub mod report;
pub mod reproduce;
pub mod runs;
pub mod tensorboard;
pub mod timing;
pub mod trainer;

mod noise;
mod playback;
mod seed;
