//! From request to answer: 200 corrections over HTTP, as the page makes them.
//!
//! `cargo bench -p a2lp-review` prints a line per size and method. The journal is on the disk, and every click is flushed.

use a2lp::{Domains, FeatureMatrix, Labels, Method, Parameters, Unknown};
use a2lp_review::{FullRun, Journal, Review, Server, Serving, Session, Task};
use rand::{RngExt, SeedableRng};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

const CLICKS: usize = 200;

/// Clusters whose target is moved, with classes that overlap.
fn domains(rows: usize, columns: usize, classes: usize) -> Domains {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let mut normal = || (0..4).map(|_| rng.random_range(-1f32..1.0)).sum::<f32>();
    let centres: Vec<f32> = (0..classes * columns).map(|_| normal()).collect();
    let shift: Vec<f32> = (0..columns).map(|_| 0.3 * normal()).collect();
    let value = |at: usize| {
        let (row, column) = (at / columns, at % columns);
        let moved = if row < rows / 2 { 0.0 } else { shift[column] };
        centres[row % classes * columns + column] + moved
    };
    let values = (0..rows * columns).map(|at| value(at) + 1.6 * normal()).collect();
    let features = FeatureMatrix::new(rows, columns, values).expect("sound values");
    let labels: Vec<String> = (0..rows / 2).map(|row| (row % classes).to_string()).collect();
    Domains::stacked(features, rows / 2, Labels::new(&labels)).expect("sound domains")
}

fn bench(rows: usize, columns: usize, classes: usize, method: Method) {
    let parameters = Parameters::new().method(method).neighbours(20).rounds(5).unknown(Unknown::Off).check();
    let task = Arc::new(Task {
        domains: domains(rows, columns, classes),
        parameters: parameters.expect("sound parameters"),
        graph: None,
        rows: None,
        ids: None,
        title: "bench".into(),
        fingerprint: "bench".into(),
    });
    let folder = tempfile::tempdir().expect("a folder");
    let (journal, past) = Journal::open(&folder.path().join("journal"), "bench").expect("a journal");
    let started = Instant::now();
    let finished = FullRun::last(task.clone(), &[]).and_then(|run| Ok(run.go(&())?)).expect("a run");
    let run_secs = started.elapsed().as_secs_f64();
    let method = finished.labelling().method.to_string();
    let session = Session::new(task, past.seed, &[], finished).expect("a session");
    let serving = Serving { without_full_runs: true, ..Serving::default() };
    let server = Server::start(Review::new(session, Some(journal)), serving).expect("a server");
    let url = server.url();
    let (address, token) = url.trim_start_matches("http://").split_once("/#").expect("an address");

    let mut stream = BufReader::new(TcpStream::connect(address).expect("a connection"));
    stream.get_ref().set_nodelay(true).expect("a socket");
    let mut changed = 0;
    let mut millis: Vec<f64> = (0..CLICKS)
        .map(|_| {
            let item = server.review().session().groups(1)[0].items[0].clone();
            // What the person sees is the second choice.
            let label = item.classes.get(1).map_or("0", |(name, _)| name.as_str());
            let body = format!("{{\"labels\":[[{},\"{label}\"]]}}", item.row);
            let request = format!(
                "POST /api/correct HTTP/1.1\r\nHost: {address}\r\nX-A2LP-Token: {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let started = Instant::now();
            stream.get_mut().write_all(request.as_bytes()).expect("a server that listens");
            let answer = read_answer(&mut stream);
            let took = 1e3 * started.elapsed().as_secs_f64();
            let effect = answer.split("\"changed\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
            changed += effect.and_then(|count| count.parse::<usize>().ok()).expect("an effect");
            took
        })
        .collect();
    millis.sort_by(f64::total_cmp);
    println!(
        "{rows} rows × {classes} classes, {method}: median {:.1} ms, p95 {:.1} ms, slowest {:.1} ms; {changed} labels followed {CLICKS} clicks; the run itself took {run_secs:.1} s",
        millis[CLICKS / 2],
        millis[CLICKS * 95 / 100],
        millis[CLICKS - 1],
    );
}

fn read_answer(stream: &mut BufReader<TcpStream>) -> String {
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("an answer");
        if line == "\r\n" {
            break;
        }
        if let Some(text) = line.strip_prefix("Content-Length: ") {
            length = text.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body");
    String::from_utf8(body).expect("text")
}

fn main() {
    // `cargo test --benches` only wants to know that it runs.
    if std::env::args().any(|word| word == "--test") {
        return bench(400, 16, 4, Method::A2lp);
    }
    for (rows, columns, classes) in [(24_000, 128, 12), (24_000, 128, 345), (200_000, 64, 12)] {
        for method in [Method::A2lp, Method::Consensus] {
            bench(rows, columns, classes, method);
        }
    }
}
