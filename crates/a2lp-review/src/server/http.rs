//! Just enough of HTTP/1.1: one request at a time per connection, bodies of known length, strict limits.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Most bytes of a request line with its headers.
const MAX_HEAD: usize = 16 << 10;
const MAX_HEADERS: usize = 64;
/// Most bytes of a body.
const MAX_BODY: usize = 4 << 20;
/// How long a request may take to arrive once it has begun.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection may be silent.
const IDLE: Duration = Duration::from_secs(30);

/// A request.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) is_post: bool,
    pub(super) path: String,
    /// Pairs of names and values, decoded.
    pub(super) query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) keeps_alive: bool,
}

impl Request {
    /// The value of a header, by its name in lower case. A header that stands there twice has none.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }

    pub(super) fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known == name)
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A status that ends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok = 200,
    BadRequest = 400,
    Forbidden = 403,
    NotFound = 404,
    MethodNotAllowed = 405,
    Timeout = 408,
    Conflict = 409,
    LengthRequired = 411,
    TooLarge = 413,
    UnsupportedType = 415,
    HeadTooLarge = 431,
    Failed = 500,
    Busy = 503,
    BadVersion = 505,
}

impl Status {
    fn reason(self) -> &'static str {
        match self {
            Status::Ok => "OK",
            Status::BadRequest => "Bad Request",
            Status::Forbidden => "Forbidden",
            Status::NotFound => "Not Found",
            Status::MethodNotAllowed => "Method Not Allowed",
            Status::Timeout => "Request Timeout",
            Status::Conflict => "Conflict",
            Status::LengthRequired => "Length Required",
            Status::TooLarge => "Content Too Large",
            Status::UnsupportedType => "Unsupported Media Type",
            Status::HeadTooLarge => "Request Header Fields Too Large",
            Status::Failed => "Internal Server Error",
            Status::Busy => "Service Unavailable",
            Status::BadVersion => "HTTP Version Not Supported",
        }
    }
}

/// Why no request could be read.
#[derive(Debug)]
pub(super) enum Unread {
    /// The other side is gone or silent.
    Closed,
    /// The request is refused.
    Refused(Status),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Unread::Refused(Status::Timeout),
            _ => Unread::Closed,
        }
    }
}

/// One side of a connection, with what was read beyond the last request.
pub(super) struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Connection { stream, unread: Vec::new() })
    }

    /// Reads the next request.
    pub(super) fn read(&mut self) -> Result<Request, Unread> {
        self.stream.set_read_timeout(Some(IDLE))?;
        if self.unread.is_empty() && self.fill().map_err(|_| Unread::Closed)? == 0 {
            return Err(Unread::Closed);
        }
        let deadline = Instant::now() + PATIENCE;
        let (mut request, head, length) = loop {
            match parse(&self.unread)? {
                Some(parsed) => break parsed,
                None if self.unread.len() > MAX_HEAD => return Err(Unread::Refused(Status::HeadTooLarge)),
                None => self.fill_before(deadline)?,
            }
        };
        if head > MAX_HEAD {
            return Err(Unread::Refused(Status::HeadTooLarge));
        }
        while self.unread.len() < head + length {
            self.fill_before(deadline)?;
        }
        let rest = self.unread.split_off(head + length);
        request.body = self.unread.split_off(head);
        self.unread = rest;
        Ok(request)
    }

    fn fill_before(&mut self, deadline: Instant) -> Result<(), Unread> {
        let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        self.stream.set_read_timeout(Some(left.ok_or(Unread::Refused(Status::Timeout))?))?;
        match self.fill()? {
            0 => Err(Unread::Closed),
            _ => Ok(()),
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 8 << 10];
        let count = self.stream.read(&mut buffer)?;
        self.unread.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    /// Sends a response and its body.
    pub(super) fn send(&mut self, response: &Response, keeps_alive: bool) -> io::Result<()> {
        let mut head = response.head();
        let alive = if keeps_alive { "keep-alive" } else { "close" };
        head += &format!("Content-Length: {}\r\nConnection: {alive}\r\n\r\n", response.body.len());
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&response.body);
        self.stream.write_all(&bytes)
    }

    /// Sends a response whose body follows bit by bit, until the connection ends.
    pub(super) fn start(&mut self, response: &Response) -> io::Result<()> {
        self.stream.write_all((response.head() + "Connection: close\r\n\r\n").as_bytes())
    }

    /// Sends a bit of it.
    pub(super) fn push(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(text.as_bytes())
    }
}

/// A response.
pub(super) struct Response {
    pub(super) status: Status,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn new(content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Response { status: Status::Ok, content_type, headers: Vec::new(), body: body.into() }
    }

    pub(super) fn json(value: &impl serde::Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Response::new("application/json", body),
            Err(_) => Response::error(Status::Failed, "the answer could not be written"),
        }
    }

    pub(super) fn error(status: Status, message: &str) -> Self {
        let body = serde_json::json!({ "error": message }).to_string();
        Response { status, ..Response::new("application/json", body) }
    }

    fn head(&self) -> String {
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\n",
            self.status as u16,
            self.status.reason(),
            self.content_type
        );
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head
    }
}

/// The request that stands at the start of these bytes, the length of its head and of its body; `None` if the head is not whole yet.
fn parse(bytes: &[u8]) -> Result<Option<(Request, usize, usize)>, Unread> {
    let refuse = |status: Status| Err(Unread::Refused(status));
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return refuse(Status::HeadTooLarge),
        Err(httparse::Error::Version) => return refuse(Status::BadVersion),
        Err(_) => return refuse(Status::BadRequest),
    };
    let mut request = Request::default();
    match parsed.method {
        Some("GET") => {}
        Some("POST") => request.is_post = true,
        _ => return refuse(Status::MethodNotAllowed),
    }
    for header in parsed.headers.iter() {
        let Ok(value) = std::str::from_utf8(header.value) else { return refuse(Status::BadRequest) };
        request.headers.push((header.name.to_ascii_lowercase(), value.trim().to_string()));
    }
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (Some(path), Some(query)) = (decode(path), parse_query(query)) else {
        return refuse(Status::BadRequest);
    };
    if !path.starts_with('/') {
        return refuse(Status::BadRequest);
    }
    (request.path, request.query) = (path, query);
    let is_old = parsed.version == Some(0);
    request.keeps_alive =
        !is_old && request.header("connection").is_none_or(|c| !c.eq_ignore_ascii_case("close"));
    // Two ways to tell where a body ends are a way to smuggle a second request.
    if request.has_header("transfer-encoding") {
        return refuse(Status::LengthRequired);
    }
    let length = match (request.has_header("content-length"), request.header("content-length")) {
        (false, _) if request.is_post => return refuse(Status::LengthRequired),
        (false, _) => 0,
        (true, Some(text)) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().unwrap_or(usize::MAX)
        }
        (true, _) => return refuse(Status::BadRequest),
    };
    if length > MAX_BODY {
        return refuse(Status::TooLarge);
    }
    if length > 0 && !request.is_post {
        return refuse(Status::BadRequest);
    }
    Ok(Some((request, head, length)))
}

fn parse_query(query: &str) -> Option<Vec<(String, String)>> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name)?, decode(value)?))
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

/// Replaces %41 by A. `None` if that gives no text.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || Some((rest.next()? as char).to_digit(16)? as u8);
                digit()? << 4 | digit()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Option<Status> {
        match parse(text.as_bytes()) {
            Err(Unread::Refused(status)) => Some(status),
            _ => None,
        }
    }

    #[test]
    fn requests_are_read_with_their_bodies() {
        let text = "POST /api/x%20y?a=1&b=%C3%A4 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}";
        let (request, head, length) = parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!((request.path.as_str(), length), ("/api/x y", 2));
        assert_eq!(request.parameter("b"), Some("ä"));
        assert_eq!(&text[head..], "{}");
        assert!(parse(&text.as_bytes()[..40]).unwrap().is_none());
        for cut in 0..head {
            assert!(!matches!(parse(&text.as_bytes()[..cut]), Ok(Some(_))), "{cut}");
        }
    }

    #[test]
    fn what_is_malformed_gets_its_status() {
        let with = |headers: &str| format!("POST / HTTP/1.1\r\n{headers}\r\n\r\n");
        assert_eq!(refused("BREW / HTTP/1.1\r\n\r\n"), Some(Status::MethodNotAllowed));
        assert_eq!(refused("GET / HTTP/3.0\r\n\r\n"), Some(Status::BadVersion));
        assert_eq!(refused("GET x HTTP/1.1\r\n\r\n"), Some(Status::BadRequest));
        assert_eq!(refused("GET /%zz HTTP/1.1\r\n\r\n"), Some(Status::BadRequest));
        assert_eq!(refused("GET /%ff HTTP/1.1\r\n\r\n"), Some(Status::BadRequest));
        assert_eq!(refused("\u{1}\u{2}\u{3}\r\n\r\n"), Some(Status::BadRequest));
        assert_eq!(refused(&with("Host: h")), Some(Status::LengthRequired));
        assert_eq!(refused(&with("Transfer-Encoding: chunked")), Some(Status::LengthRequired));
        assert_eq!(refused(&with("Content-Length: -1")), Some(Status::BadRequest));
        assert_eq!(refused(&with("Content-Length: 1\r\nContent-Length: 2")), Some(Status::BadRequest));
        assert_eq!(refused(&with("Content-Length: 99999999999999999999999")), Some(Status::TooLarge));
        assert_eq!(refused(&with("Content-Length: 4194305")), Some(Status::TooLarge));
        let many = "A: b\r\n".repeat(65);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\n{many}\r\n")), Some(Status::HeadTooLarge));
        assert_eq!(refused("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), Some(Status::BadRequest));
    }
}
