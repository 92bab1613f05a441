//! Sends one request over and over on one connection, at next to no cost of its own: the time is that of the server.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::BenchError;

/// The longest answer, in bytes.
const MAX_ANSWER: usize = 1024 * 1024;

/// One connection and the request that is sent on it.
pub struct Asker {
    stream: TcpStream,
    address: String,
    token: String,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Asker {
    /// Connects to `http://address` for `GET path` with this token.
    pub async fn connect(url: &str, token: &str, path: &str) -> Result<Self, BenchError> {
        Self::open(url, token, &format!("GET {path}"), "").await
    }

    /// Connects to `http://address` for `POST path` with this token and JSON.
    pub async fn connect_to_post(url: &str, token: &str, path: &str, body: &str) -> Result<Self, BenchError> {
        Self::open(url, token, &format!("POST {path}"), body).await
    }

    async fn open(url: &str, token: &str, line: &str, body: &str) -> Result<Self, BenchError> {
        let address = url.trim_start_matches("http://");
        let stream = TcpStream::connect(address).await.map_err(system())?;
        stream.set_nodelay(true).map_err(system())?;
        let mut asker = Self {
            stream,
            address: address.to_owned(),
            token: token.to_owned(),
            request: Vec::new(),
            answer: Vec::with_capacity(8192),
        };
        asker.ask_for(line, body);
        Ok(asker)
    }

    /// Replaces the request: `GET /path`, or `PUT /path` with this JSON.
    pub fn ask_for(&mut self, line: &str, body: &str) {
        let Self { address, token, .. } = self;
        let about_body = match body.len() {
            0 => String::new(),
            bytes => format!("Content-Type: application/json\r\nContent-Length: {bytes}\r\n"),
        };
        let request =
            format!("{line} HTTP/1.1\r\nHost: {address}\r\nX-Auth-Token: {token}\r\n{about_body}\r\n{body}");
        self.request = request.into_bytes();
    }

    /// Sends the request once; an error unless the status is 200.
    pub async fn once(&mut self) -> Result<(), BenchError> {
        self.stream.write_all(&self.request).await.map_err(system())?;
        self.answer.clear();
        while !is_whole(&self.answer) {
            let read = self.stream.read_buf(&mut self.answer).await.map_err(system())?;
            if read == 0 || self.answer.len() > MAX_ANSWER {
                break;
            }
        }
        if is_whole(&self.answer) && self.answer.starts_with(b"HTTP/1.1 200") {
            return Ok(());
        }
        Err(BenchError::Unexpected {
            what: "an answer".to_owned(),
            found: String::from_utf8_lossy(&self.answer).into_owned(),
        })
    }
}

fn system() -> impl FnOnce(std::io::Error) -> BenchError {
    BenchError::system("ask the API")
}

/// Whether the head has arrived, and as many bytes of the body as it announces.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    length.is_some_and(|length| answer.len() >= end + 4 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_with_its_last_byte() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert!(is_whole(answer));
        assert!(!is_whole(&answer[..answer.len() - 1]));
        assert!(!is_whole(&answer[..20]));
    }
}
