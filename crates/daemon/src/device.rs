//! The TUN device. Another program may give it another name; its number stays.

use nix::net::if_::{if_indextoname, if_nametoindex};

use crate::netlink::RouteError;

/// The device of a running daemon.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub index: u32,
    /// Its name at the start.
    first: String,
}

impl Device {
    /// The one that has this name now.
    pub fn named(first: String) -> Result<Self, RouteError> {
        let index = if_nametoindex(first.as_str()).map_err(|e| RouteError::Netlink(e.to_string()))?;
        Ok(Self { index, first })
    }

    /// Its name now, or its first one if there is no such device any more.
    pub fn name(&self) -> String {
        let now = if_indextoname(self.index).ok().and_then(|name| name.into_string().ok());
        now.unwrap_or_else(|| self.first.clone())
    }
}
