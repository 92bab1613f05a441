//! A service with scripted answers that records its requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method and path with query, as in `GET /hosts?limit=3`.
    pub line: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; `null` without one.
    pub body: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// An answer.
pub struct Reply {
    status: u16,
    headers: String,
    body: String,
}

impl Reply {
    pub fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: "Content-Type: application/json\r\n".to_owned(),
            body: body.to_string(),
        }
    }

    pub fn with(mut self, header: &str) -> Self {
        self.headers.push_str(header);
        self.headers.push_str("\r\n");
        self
    }

    pub fn empty(status: u16) -> Self {
        Self {
            status,
            headers: String::new(),
            body: String::new(),
        }
    }

    /// A stream that ends after this text.
    pub fn stream(text: &str) -> Self {
        Self {
            status: 200,
            headers: "Content-Type: text/event-stream\r\n".to_owned(),
            body: text.to_owned(),
        }
    }

    pub fn error(status: u16, code: &str, detail: &str) -> Self {
        let error = json!({
            "request_id": "req-1", "code": code, "status": status, "title": "No", "detail": detail, "links": [],
        });
        Self::json(status, &json!({"errors": [error]}))
    }
}

/// The service; it listens until the test process ends.
pub struct Service {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Service {
    /// Starts the service. `answer` gets each request and its number, from 0.
    pub fn start(answer: impl Fn(usize, &Asked) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(request) = read(&mut stream) else {
                    continue;
                };
                let number = log.lock().len();
                log.lock().push(request.clone());
                write(&mut stream, answer(number, &request));
            }
        });
        Self { url, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }

    pub fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let first = lines.remove(0);
    let headers: Vec<(String, String)> = lines
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Asked {
        line: first.trim_end_matches(" HTTP/1.1").to_owned(),
        headers,
        body,
    })
}

fn write(stream: &mut TcpStream, reply: Reply) {
    let is_stream = reply.headers.contains("event-stream");
    let length = if is_stream {
        String::new()
    } else {
        format!("Content-Length: {}\r\n", reply.body.len())
    };
    let Reply {
        status,
        headers,
        body,
    } = reply;
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\n{headers}{length}Connection: close\r\n\r\n{body}"
    );
}
