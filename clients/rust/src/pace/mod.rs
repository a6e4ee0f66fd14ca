//! A caller that behaves: sends no more than the server has left for it, and comes back when it is
//! told to.

mod field;
mod gate;
mod message;
mod reading;
mod service;

pub use message::{Once, PacedRequest, PacedResponse, ReplayBody};
pub use reading::{read, Reading};
pub use service::{Paced, PacedLayer};
