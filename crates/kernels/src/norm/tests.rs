//! Norms against their definitions, finite differences, and row against row.

use super::*;

mod batch;
mod layer;
