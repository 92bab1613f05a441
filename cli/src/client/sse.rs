//! Server-sent events (WHATWG HTML, section 9.2), as far as the API uses them.

use crate::error::CliError;

/// The longest event.
const MAX_BYTES: usize = 1024 * 1024;

/// One event of the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// `id:`
    pub id: Option<String>,
    /// `event:`
    pub kind: Option<String>,
    /// `data:`, lines joined.
    pub data: String,
}

/// Splits the stream into events; the chunks may end anywhere.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    after_return: bool,
    frame: Frame,
    last_id: Option<String>,
    data: Vec<String>,
    bytes: usize,
}

impl Parser {
    /// Adds a chunk and returns the events that are complete now.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, CliError> {
        let mut frames = Vec::new();
        for &byte in bytes {
            let is_second = self.after_return && byte == b'\n';
            self.after_return = byte == b'\r';
            match byte {
                _ if is_second => {}
                b'\n' | b'\r' => frames.extend(self.end_line()),
                _ => self.line.push(byte),
            }
            self.bytes += 1;
            if self.bytes > MAX_BYTES {
                let why = format!("an event is longer than {MAX_BYTES} bytes");
                return Err(CliError::Answer {
                    url: "the stream of events".to_owned(),
                    why,
                });
            }
        }
        Ok(frames)
    }

    /// The id of the last block that had one; a block without data may have an id too.
    #[must_use]
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    fn end_line(&mut self) -> Option<Frame> {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        if line.is_empty() {
            return self.end_frame();
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match field {
            "id" => self.frame.id = Some(value),
            "event" => self.frame.kind = Some(value),
            "data" => self.data.push(value),
            // A comment (the sign of life), or a field of a later version.
            _ => {}
        }
        None
    }

    fn end_frame(&mut self) -> Option<Frame> {
        self.bytes = 0;
        let mut frame = std::mem::take(&mut self.frame);
        self.last_id = frame.id.clone().or(self.last_id.take());
        if self.data.is_empty() {
            return None;
        }
        frame.data = std::mem::take(&mut self.data).join("\n");
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b": hello\n\nid: 7\nevent: host.fenced\ndata: {\"a\":\ndata: 1}\n\r\nid:8\r\ndata:x\r\n\r\nid: 9\ndata: cut";

    fn frames() -> Vec<Frame> {
        let seven = Frame {
            id: Some("7".to_owned()),
            kind: Some("host.fenced".to_owned()),
            data: "{\"a\":\n1}".to_owned(),
        };
        vec![
            seven,
            Frame {
                id: Some("8".to_owned()),
                kind: None,
                data: "x".to_owned(),
            },
        ]
    }

    #[test]
    fn events_are_read_and_half_an_event_waits() {
        assert_eq!(Parser::default().push(STREAM).unwrap(), frames());
    }

    #[test]
    fn it_does_not_matter_where_the_stream_was_cut() {
        let mut parser = Parser::default();
        let pieces = STREAM.chunks(1).flat_map(|piece| parser.push(piece).unwrap());
        assert_eq!(pieces.collect::<Vec<_>>(), frames());
    }

    #[test]
    fn the_place_to_go_on_at_is_known_without_any_event() {
        let mut parser = Parser::default();
        assert!(parser.push(b"id: 41\n\n: still here\n\n").unwrap().is_empty());
        assert_eq!(parser.last_id(), Some("41"));
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut parser = Parser::default();
        assert!(parser.push(&vec![b'x'; MAX_BYTES + 1]).is_err());
    }
}
