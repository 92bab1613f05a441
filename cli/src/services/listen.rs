//! Addresses to listen on, tested before anything else is begun.

use std::net::{SocketAddr, TcpListener};

use crate::error::CliError;

/// Refuses an address that cannot be listened on, before the service makes files and connections.
pub fn check(key: &'static str, address: SocketAddr) -> Result<(), CliError> {
    TcpListener::bind(address).map(drop).map_err(|error| {
        CliError::Usage(format!(
            "{key} is {address}, and nothing can listen there: {error}; a free address of this machine is allowed, as 127.0.0.1:PORT, \
             or port 0 for any free one"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_taken_is_told_with_the_setting() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = check("api.listen", address).unwrap_err().to_string();
        assert!(
            error.contains(&format!("api.listen is {address}")) && error.contains("in use"),
            "{error}"
        );
        drop(taken);
        check("api.listen", address).unwrap();
        check("api.listen", "127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(check("api.listen", "203.0.113.7:1".parse().unwrap()).is_err());
    }
}
