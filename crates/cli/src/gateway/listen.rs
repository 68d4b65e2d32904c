//! Where the gateway listens: TCP, TLS or a Unix socket, and what may be in the way there.

use super::settings::Place;
use crate::failure::Failure;
use hookgate_server::gateway::{Listen, Tls};
use std::path::Path;
use tokio::net::{TcpListener, UnixListener};

/// Opens the listener, and says where it is.
pub(super) async fn bind(place: &Place) -> Result<(Listen, String), Failure> {
    match place {
        Place::Tcp { address, tls } => {
            let listener = TcpListener::bind(address)
                .await
                .map_err(|error| Failure::new(format!("the gateway cannot listen on {address}: {error}")))?;
            let at = listener.local_addr().map_or_else(|_| address.clone(), |at| at.to_string());
            let tls = match tls {
                Some((cert, key)) => Some(read_tls(cert, key)?),
                None => None,
            };
            let scheme = if tls.is_some() { "https" } else { "http" };
            Ok((Listen::Tcp(listener, tls), format!("{scheme}://{at}")))
        }
        Place::Unix(path) => {
            let cannot = |error: std::io::Error| {
                Failure::new(format!("the gateway cannot listen on {}: {error}", path.display()))
            };
            remove_stale(path).map_err(cannot)?;
            let listener = UnixListener::bind(path).map_err(cannot)?;
            Ok((Listen::Unix(listener), format!("unix:{}", path.display())))
        }
    }
}

/// Takes away a socket that nobody listens on any more, and nothing else.
fn remove_stale(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.file_type().is_socket() => match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => Err(std::io::Error::other("somebody listens there already")),
            Err(_) => std::fs::remove_file(path),
        },
        Ok(_) => Err(std::io::Error::other("there is a file of that name that is no socket")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn read_tls(cert: &Path, key: &Path) -> Result<Tls, Failure> {
    let read = |path: &Path| {
        std::fs::read(path)
            .map_err(|error| Failure::new(format!("{} cannot be read: {error}", path.display())))
    };
    Tls::new(&read(cert)?, &read(key)?).map_err(Failure::new)
}
