//! What could not be sent, on disk: one file for each request, in a folder for each exporter and signal.
//!
//! The extension `file_storage` names the folder; an exporter whose `sending_queue.storage` names the extension puts there
//! what its queue has no room for and what is left at the stop, and sends it when the endpoint answers again, be it a
//! later collector's. **No secret is in it**: see [`Credentials`].

mod credentials;
mod spool;
mod storages;

pub use credentials::{Credential, Credentials};
pub use spool::{Spool, decode, encode};
pub use storages::{Folder, Storages, Unclaimed};
