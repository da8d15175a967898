//! R15: the review server is killed under load, and asked for what makes no sense.

use crate::Effort;
use crate::commands::{Clusters, binary, code, run, told};
use crate::files;
use crate::mutate::Draws;
use crate::tally::{Tally, expect};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const ROWS: u64 = 600;
const CLIENTS: usize = 3;

pub(crate) fn check(effort: Effort) -> Tally {
    let mut tally = Tally::default();
    let folder = files::scratch();
    Clusters::new(300, ROWS as usize, 16, 5, 1).write(folder.path());
    let output = run(
        folder.path(),
        "label --source src.npz --target tgt.npy --method a2lp --neighbours 10 --out labels.csv",
    );
    if code(&output) != 0 {
        tally.case("labels to review", Err(told(&output)));
        return tally;
    }
    kill_under_load(folder.path(), effort.of(8, 200), &mut tally);
    ask_nonsense(folder.path(), effort.of(400, 10_000), &mut tally);
    tally
}

/// A review that runs.
struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Server {
    fn start(folder: &Path) -> Result<Self, String> {
        let mut child = Command::new(binary())
            .current_dir(folder)
            .args(["review", "labels.csv", "--no-browser", "--threads", "1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut url = String::new();
        let out = child.stdout.take().ok_or("no output")?;
        BufReader::new(out).read_line(&mut url).map_err(|error| error.to_string())?;
        match url.trim().trim_start_matches("http://").split_once("/#") {
            Some((address, token)) => Ok(Server { address: address.into(), token: token.into(), child }),
            None => {
                let mut said = String::new();
                child.stderr.take().map(|mut err| err.read_to_string(&mut said));
                Err(format!("the review does not go on: {said}"))
            }
        }
    }

    fn kill(&mut self) -> String {
        self.child.kill().ok();
        self.child.wait().ok();
        let mut said = String::new();
        self.child.stderr.take().map(|mut err| err.read_to_string(&mut said));
        said
    }

    fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
        let kibibytes: u64 =
            line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
        kibibytes * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The status of an answer and its body; status 0 if there was none.
fn send(address: &str, request: &[u8]) -> (u16, String) {
    let Ok(mut stream) = TcpStream::connect(address) else { return (0, String::new()) };
    stream.set_read_timeout(Some(Duration::from_secs(15))).ok();
    stream.write_all(request).ok();
    stream.shutdown(Shutdown::Write).ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    // An answer that was cut off acknowledges nothing.
    match answer.split_once("\r\n\r\n") {
        Some((_, body)) => (status, body.to_string()),
        None => (0, String::new()),
    }
}

fn request(address: &str, token: &str, method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
    let mut text = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nX-A2LP-Token: {token}\r\nConnection: close\r\n"
    );
    if let Some(body) = body {
        let body = body.to_string();
        text += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    } else {
        text += "\r\n";
    }
    text.into_bytes()
}

#[derive(Default)]
struct Clicks {
    rows: BTreeMap<u64, Clicked>,
    acknowledged: u64,
}

/// The last label of a row that was acknowledged, and those that were sent after it.
#[derive(Default, Debug)]
struct Clicked {
    acknowledged: Option<String>,
    sent: BTreeSet<String>,
}

/// Kills the server at random moments while clients click; after every restart each acknowledged click must be there.
fn kill_under_load(folder: &Path, kills: u64, tally: &mut Tally) {
    let mut draws = Draws(15);
    let clicks = Mutex::new(Clicks::default());
    let next = AtomicU64::new(0);
    for kill in 0..kills {
        let mut server = match Server::start(folder) {
            Ok(server) => server,
            Err(error) => return tally.case(format!("kill {kill}"), Err(error)),
        };
        tally.case(format!("kill {kill}"), all_there(&server, &clicks));
        let stops = AtomicBool::new(false);
        let pause = Duration::from_micros(draws.next() % 120_000);
        let (address, token) = (server.address.clone(), server.token.clone());
        std::thread::scope(|scope| {
            for client in 0..CLIENTS as u64 {
                let (clicks, next, stops, address, token) = (&clicks, &next, &stops, &address, &token);
                scope.spawn(move || click(client, clicks, next, stops, address, token));
            }
            std::thread::sleep(pause);
            server.kill();
            stops.store(true, Ordering::SeqCst);
        });
    }
    match Server::start(folder) {
        Ok(server) => tally.case("after the last kill", all_there(&server, &clicks)),
        Err(error) => tally.case("after the last kill", Err(error)),
    }
    let acknowledged = clicks.into_inner().map_or(0, |clicks| clicks.acknowledged);
    tally.case("clicks were made", expect(acknowledged >= kills, || format!("only {acknowledged}")));
    tally.note(format!("{acknowledged} clicks acknowledged over {kills} kills"));
}

/// Clicks until the server is gone. Every client has rows of its own.
fn click(
    client: u64,
    clicks: &Mutex<Clicks>,
    next: &AtomicU64,
    stops: &AtomicBool,
    address: &str,
    token: &str,
) {
    while !stops.load(Ordering::SeqCst) {
        let number = next.fetch_add(1, Ordering::SeqCst);
        let row = number * CLIENTS as u64 % ROWS / CLIENTS as u64 * CLIENTS as u64 + client;
        let label = format!("class {}", number % 7);
        if let Ok(mut clicks) = clicks.lock() {
            clicks.rows.entry(row).or_default().sent.insert(label.clone());
        }
        let body = json!({ "labels": [[row, label]] });
        let (status, _) = send(address, &request(address, token, "POST", "/api/correct", Some(&body)));
        if let (200, Ok(mut clicks)) = (status, clicks.lock()) {
            clicks.rows.insert(row, Clicked { acknowledged: Some(label), sent: BTreeSet::new() });
            clicks.acknowledged += 1;
        }
    }
}

fn all_there(server: &Server, clicks: &Mutex<Clicks>) -> Result<(), String> {
    let clicks = clicks.lock().map_err(|_| "a client failed".to_string())?;
    let rows: Vec<u64> = clicks.rows.keys().copied().collect();
    for rows in rows.chunks(500) {
        let list: Vec<String> = rows.iter().map(u64::to_string).collect();
        let path = format!("/api/items?items={}", list.join(","));
        let (status, body) =
            send(&server.address, &request(&server.address, &server.token, "GET", &path, None));
        let body: Value = serde_json::from_str(&body).map_err(|error| format!("status {status}: {error}"))?;
        for item in body["items"].as_array().ok_or("no items")? {
            let (row, label) =
                (item["row"].as_u64().unwrap_or(u64::MAX), item["label"].as_str().unwrap_or_default());
            let clicked = clicks.rows.get(&row).ok_or("another row")?;
            let Some(acknowledged) = &clicked.acknowledged else { continue };
            let is_there = acknowledged == label || clicked.sent.contains(label);
            expect(is_there && item["origin"] == "corrected", || {
                format!("row {row} is {label}: {clicked:?}")
            })?;
        }
    }
    Ok(())
}

/// Sends requests that are wrong in many ways. Each gets a status that tells so; the server stays as it was.
fn ask_nonsense(folder: &Path, count: usize, tally: &mut Tally) {
    let mut server = match Server::start(folder) {
        Ok(server) => server,
        Err(error) => return tally.case("nonsense", Err(error)),
    };
    let (address, token) = (server.address.clone(), server.token.clone());
    let session = |_: &Server| {
        let (status, body) = send(&address, &request(&address, &token, "GET", "/api/session", None));
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        (status, body["corrections"].clone(), body["events"].clone())
    };
    let mut draws = Draws(99);
    // Buffers that every thread and connection has once are not growth.
    for _ in 0..count.min(200) {
        send(&address, &nonsense(&mut draws, &address, &token).0);
    }
    let (before, first_bytes) = (session(&server), server.resident_bytes());
    for case in 0..count {
        let (bytes, allowed) = nonsense(&mut draws, &address, &token);
        let (status, _) = send(&address, &bytes);
        let wrong = expect(allowed.contains(&status), || {
            let shown: String = String::from_utf8_lossy(&bytes).chars().take(120).collect();
            format!("status {status} for {shown:?}")
        });
        tally.case(format!("nonsense {case}"), wrong);
    }
    let after = session(&server);
    tally
        .case("the session is as it was", expect(before == after, || format!("{before:?} became {after:?}")));
    let grown = server.resident_bytes().saturating_sub(first_bytes);
    tally.case("memory", expect(grown < 16 << 20, || format!("{grown} bytes more")));
    tally.note(format!("{count} malformed requests, {} MB more memory", grown >> 20));
    let said = server.kill();
    tally.case("no panic", expect(!said.contains("panicked"), || said.clone()));
}

/// A request that makes no sense, and the statuses it may get. 0 is an end without an answer, for what was never whole.
fn nonsense(draws: &mut Draws, address: &str, token: &str) -> (Vec<u8>, &'static [u16]) {
    let mut below = |limit: u64| draws.next() % limit;
    let host = format!("Host: {address}\r\nX-A2LP-Token: {token}\r\nConnection: close\r\n");
    let post = |body: &[u8]| {
        let head = format!(
            "POST /api/correct HTTP/1.1\r\n{host}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    };
    match below(12) {
        0 => (
            (0..below(400)).map(|at| (at.wrapping_mul(2654435761) >> 7) as u8 ^ below(256) as u8).collect(),
            &[0, 400, 405, 431, 505],
        ),
        1 => {
            // A whole request with a part cut off.
            let whole = post(br#"{"labels":[[1,"class 1"]]}"#);
            let cut = below(whole.len() as u64 - 1) as usize;
            (whole[..cut].to_vec(), &[0, 400, 405, 411])
        }
        2 => (
            format!("GET /{} HTTP/1.1\r\n{host}\r\n", "a".repeat(below(40_000) as usize)).into_bytes(),
            &[404, 431],
        ),
        3 => (
            format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(below(3_000) as usize + 64))
                .into_bytes(),
            &[431],
        ),
        4 => (
            format!(
                "{} / HTTP/1.1\r\n{host}\r\n",
                ["PUT", "DELETE", "OPTIONS", "TRACE", "get", "PATCH"][below(6) as usize]
            )
            .into_bytes(),
            &[405],
        ),
        5 => (
            format!("GET /api/session HTTP/{}.{}\r\n{host}\r\n", below(9), below(9) + 2).into_bytes(),
            &[400, 505],
        ),
        6 => {
            let length =
                ["-1", "1e3", "0x10", "", "99999999999999999999", "5000000", "3, 3"][below(7) as usize];
            (format!("POST /api/correct HTTP/1.1\r\n{host}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{}}").into_bytes(), &[400, 413])
        }
        7 => (
            format!(
                "POST /api/correct HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
            )
            .into_bytes(),
            &[411],
        ),
        8 => {
            let body: Vec<u8> = (0..below(3_000)).map(|_| below(256) as u8).collect();
            (post(&body), &[400])
        }
        9 => {
            let body = ["[", "{\"labels\":", "{\"a\":"][below(3) as usize].repeat(below(20_000) as usize + 1);
            (post(body.as_bytes()), &[400])
        }
        10 => {
            let row = [u64::MAX, ROWS, 1 << 40][below(3) as usize];
            (post(json!({ "labels": [[row, "class 1"]] }).to_string().as_bytes()), &[400, 409])
        }
        _ => {
            let wrong = token.replace(|c: char| c.is_ascii_digit(), "z");
            let path = ["/api/session", "/api/labels", "/api/export", "/api/picture/1"][below(4) as usize];
            (format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nX-A2LP-Token: {wrong}\r\nConnection: close\r\n\r\n").into_bytes(), &[403])
        }
    }
}
