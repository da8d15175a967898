//! A review that runs as a process of its own, and a client that speaks HTTP with it.

// Each test uses some of it.
#![allow(dead_code)]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn a2lp(dir: &Path, args: &[&str]) -> Output {
    let out = Command::new(env!("CARGO_BIN_EXE_a2lp")).current_dir(dir).args(args).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    out
}

pub(crate) fn wait_for_file(path: &Path) {
    let began = Instant::now();
    while !path.exists() {
        assert!(began.elapsed() < Duration::from_secs(30), "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server under review.
pub(crate) struct Reviewed {
    child: Child,
    pub(crate) url: String,
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Reviewed {
    /// Starts `a2lp review` and waits for its address.
    pub(crate) fn start(dir: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_a2lp"))
            .current_dir(dir)
            .args(["review", "--no-browser"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().to_string();
        if !url.starts_with("http://") {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).ok();
            panic!("no address: {said}");
        }
        let (address, token) = url.trim_start_matches("http://").split_once("/#").unwrap();
        Reviewed { address: address.into(), token: token.into(), url: url.clone(), child }
    }

    /// As a power cut would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Bytes as they are; the status of the answer and its text. Status 0: no answer.
    pub(crate) fn raw(&self, request: &[u8]) -> (u16, String) {
        let Ok(mut stream) = TcpStream::connect(&self.address) else { return (0, String::new()) };
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request).ok();
        stream.shutdown(std::net::Shutdown::Write).ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer)
    }

    fn ask(&self, head: &str, body: &str) -> (u16, Value) {
        let (address, token) = (&self.address, &self.token);
        let request = format!(
            "{head} HTTP/1.1\r\nHost: {address}\r\nX-A2LP-Token: {token}\r\nConnection: close\r\n{body}"
        );
        let (status, answer) = self.raw(request.as_bytes());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.ask(&format!("GET {path}"), "\r\n")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let length = body.len();
        let rest = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        self.ask(&format!("POST {path}"), &rest)
    }
}

impl Drop for Reviewed {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
