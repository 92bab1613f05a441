//! A small HTTP server with scripted answers.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
    }

    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    /// Never answers.
    pub silent: bool,
}

impl Answer {
    pub fn new(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.to_string(),
            silent: false,
        }
    }

    pub fn empty(status: u16) -> Self {
        Self {
            body: String::new(),
            ..Self::new(status, Value::Null)
        }
    }

    pub fn silent() -> Self {
        Self {
            silent: true,
            ..Self::empty(200)
        }
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

type Script = dyn Fn(&Asked) -> Answer + Send + Sync;

pub struct Server {
    pub address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Server {
    pub async fn start(script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let script: Arc<Script> = Arc::new(script);
        let log = Arc::clone(&asked);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&log)));
            }
        });
        Self {
            address,
            asked,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }

    pub fn lines(&self) -> Vec<String> {
        self.asked().iter().map(Asked::line).collect()
    }
}

async fn serve(stream: TcpStream, script: Arc<Script>, log: Arc<Mutex<Vec<Asked>>>) {
    let mut stream = BufReader::new(stream);
    let Some(asked) = read(&mut stream).await else {
        return;
    };
    log.lock().push(asked.clone());
    let answer = script(&asked);
    if answer.silent {
        std::future::pending::<()>().await;
    }
    let mut text = format!("HTTP/1.1 {} Because\r\nconnection: close\r\n", answer.status);
    if answer.status != 204 {
        text += &format!("content-length: {}\r\n", answer.body.len());
    }
    for (name, value) in &answer.headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    text += &answer.body;
    let _ = stream.get_mut().write_all(text.as_bytes()).await;
    let _ = stream.get_mut().shutdown().await;
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let mut asked = Asked {
        method,
        path,
        headers,
        body: Value::Null,
    };
    let length = asked
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    asked.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(asked)
}
