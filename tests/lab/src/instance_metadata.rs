//! The metadata that a machine of a cloud is asked for: its own id, and nothing else.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::error::{During, LabError};

/// Answers every question with this id of an instance, until the process ends. Returns the address.
///
/// # Errors
/// If no port is free.
pub fn serve_instance_metadata(instance: &str) -> Result<String, LabError> {
    let starting = || "listening for questions for metadata".to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").during(starting)?;
    let address = format!("http://{}", listener.local_addr().during(starting)?);
    let instance = instance.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // An agent that was killed does not read its answer.
            let _ = answer(stream, &instance);
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, instance: &str) -> std::io::Result<()> {
    let mut request = [0; 4096];
    let _ = stream.read(&mut request)?;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{instance}",
        instance.len()
    )
}
