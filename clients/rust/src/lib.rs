#![doc = include_str!("../README.md")]

mod address;
mod ask;
mod body;
mod buckets;
mod client;
mod client_ip;
mod connection;
mod decision;
mod error;
mod failure;
mod fleet;
mod headers;
mod jitter;
mod key;
mod layer;
mod limit;
mod limit_text;
mod notices;
mod pace;
mod question;
mod resp;
mod server;
mod service;
mod sha256;
#[cfg(feature = "tls")]
mod tls;
mod transport;

pub mod presets;

pub use ask::{Ask, LimitAsk};
pub use body::WeirBody;
pub use client::{Weir, WeirBuilder};
pub use client_ip::{key_of as ip_key, parse_address as parse_ip, ForwardedHeader, Proxies};
pub use decision::{Decision, HttpAnswer, Reason, Reservation, Source};
pub use error::{Error, ErrorCode, OptionError};
pub use failure::{HttpForm, OnFailure};
pub use key::{ForwardedIp, Global, HeaderKey, KeyExtractor, Peer, PeerIp};
pub use layer::{ByLimit, ByPolicy, WeirLayer};
pub use limit::{concurrent, day, hour, minute, rate, second, Algorithm, Count, Kind, Limit};
pub use pace::{
    read as read_pace, Once, Paced, PacedLayer, PacedRequest, PacedResponse, Reading, ReplayBody,
};
pub use service::WeirService;
#[cfg(feature = "tls")]
pub use tls::Tls;
