//! The page of a review and what it asks for, over HTTP on this machine.
//!
//! A thread per connection: a review has a page or two, not thousands. `http` reads requests, `guard` decides who may ask, `routes` answers.

mod guard;
mod http;
mod routes;

use crate::error::ReviewError;
use crate::look::Looks;
use crate::review::Review;
use a2lp_report::trace::Map;
use guard::Guard;
use http::{Connection, Response, Status, Unread};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most connections at once.
const MAX_CONNECTIONS: usize = 64;
/// How long a person must pause before the full method runs with the corrections.
const PAUSE: Duration = Duration::from_secs(3);
/// How long a page waits for news before it is sent a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// News that are kept for pages that were away for a moment.
const NEWS: usize = 64;

/// What the server is given beside the review.
#[derive(Default)]
pub struct Serving {
    /// Pictures and texts.
    pub looks: Looks,
    /// The map of the run.
    pub map: Option<Map>,
    /// The address to listen on; this machine only unless given.
    pub address: Option<IpAddr>,
    /// The name under which the machine is asked for, if the address was given.
    pub host: Option<String>,
    /// The port; any free one unless given.
    pub port: u16,
    /// May the page be shown in a frame of another page of this machine?
    pub in_frame: bool,
    /// Do not run the full method while the person pauses.
    pub without_full_runs: bool,
}

/// A server that runs.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

/// What all connections share.
struct Shared {
    review: Mutex<Review>,
    looks: Looks,
    map: Option<Map>,
    guard: Guard,
    in_frame: bool,
    news: Mutex<News>,
    has_news: Condvar,
    full_run: Mutex<FullRunState>,
    full_run_changed: Condvar,
    runs_full: bool,
    stops: AtomicBool,
    connections: AtomicUsize,
}

/// Messages to all pages.
#[derive(Default)]
struct News {
    count: u64,
    /// The last ones.
    messages: std::collections::VecDeque<String>,
}

/// The full method beside the session.
#[derive(Default)]
struct FullRunState {
    /// When the person last did something that calls for it.
    called_for: Option<Instant>,
    is_running: bool,
    /// The person does not want to wait for the one that runs.
    is_unwanted: bool,
    /// What went wrong the last time.
    failed: Option<String>,
}

impl Server {
    /// Starts to serve a review.
    pub fn start(review: Review, serving: Serving) -> Result<Server, ReviewError> {
        let ip = serving.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let listener = TcpListener::bind((ip, serving.port))?;
        let address = listener.local_addr()?;
        // In the middle of a check the labels stay as they are.
        let in_check = !review.session().answers().is_empty() && review.session().needed_version().is_none();
        let is_due = !in_check && review.session().is_run_due();
        let shared = Arc::new(Shared {
            review: Mutex::new(review),
            looks: serving.looks,
            map: serving.map,
            guard: Guard::new(guard::random_token()?, address, serving.host.as_deref()),
            in_frame: serving.in_frame,
            news: Mutex::default(),
            has_news: Condvar::new(),
            full_run: Mutex::new(FullRunState {
                called_for: is_due.then(Instant::now),
                ..FullRunState::default()
            }),
            full_run_changed: Condvar::new(),
            runs_full: !serving.without_full_runs,
            stops: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        });
        let accepting = shared.clone();
        let mut threads = vec![std::thread::spawn(move || accept(&listener, &accepting))];
        if shared.runs_full {
            let running = shared.clone();
            threads.push(std::thread::spawn(move || run_when_due(&running)));
        }
        Ok(Server { shared, address, threads })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the page, with its token.
    pub fn url(&self) -> String {
        let ip = match self.address.ip() {
            ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            ip => ip,
        };
        format!("http://{}/#{}", SocketAddr::new(ip, self.address.port()), self.shared.guard.token())
    }

    /// The review, while nobody else uses it.
    pub fn review(&self) -> MutexGuard<'_, Review> {
        self.shared.review()
    }

    /// Stops, and gives the pages time to end.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::SeqCst);
        self.shared.has_news.notify_all();
        self.shared.full_run_changed.notify_all();
        // Wakes the thread that waits for connections.
        let ip =
            if self.address.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { self.address.ip() };
        TcpStream::connect_timeout(&SocketAddr::new(ip, self.address.port()), Duration::from_secs(1)).ok();
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

impl Shared {
    fn review(&self) -> MutexGuard<'_, Review> {
        // A panic in one request leaves the review as its events made it, or in the middle of an event that was not acknowledged.
        self.review.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn full_run(&self) -> MutexGuard<'_, FullRunState> {
        self.full_run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stops(&self) -> bool {
        self.stops.load(Ordering::SeqCst)
    }

    /// Tells all pages.
    fn tell(&self, message: &serde_json::Value) {
        let mut news = self.news();
        news.count += 1;
        news.messages.push_back(message.to_string());
        if news.messages.len() > NEWS {
            news.messages.pop_front();
        }
        self.has_news.notify_all();
    }

    /// The corrections changed: the full method is due when the person pauses.
    fn call_for_full_run(&self) {
        let mut state = self.full_run();
        (state.called_for, state.failed) = (Some(Instant::now()), None);
        self.full_run_changed.notify_all();
    }

    /// Runs the full method at once, if it is due.
    fn hurry_full_run(&self) {
        let mut state = self.full_run();
        if state.called_for.is_some() {
            state.called_for = Instant::now().checked_sub(PAUSE).or(state.called_for);
            self.full_run_changed.notify_all();
        }
    }

    /// Will labels be replaced by a full run?
    fn awaits_full_run(&self) -> bool {
        let state = self.full_run();
        self.runs_full && (state.is_running && !state.is_unwanted || state.called_for.is_some())
    }

    /// The labels stay as they are.
    fn forget_full_run(&self) {
        let mut state = self.full_run();
        (state.called_for, state.is_unwanted) = (None, state.is_running);
    }
}

/// Takes connections until the server stops.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stops() {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = shared.clone();
        let busy = shared.connections.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS;
        let serve = move || {
            serve_connection(stream, &shared, busy);
            shared.connections.fetch_sub(1, Ordering::SeqCst);
        };
        // Without a thread the connection is closed.
        std::thread::Builder::new().name("review page".into()).spawn(serve).ok();
    }
}

fn serve_connection(stream: TcpStream, shared: &Shared, busy: bool) {
    let Ok(mut connection) = Connection::new(stream) else { return };
    if busy {
        connection.send(&Response::error(Status::Busy, "too many connections"), false).ok();
        return;
    }
    while !shared.stops() {
        let request = match connection.read() {
            Ok(request) => request,
            Err(Unread::Closed) => return,
            Err(Unread::Refused(status)) => {
                let mut response = Response::error(status, "the request could not be read");
                shared.guard.protect(&mut response, shared.in_frame);
                connection.send(&response, false).ok();
                return;
            }
        };
        if request.path == "/api/events" && !request.is_post {
            if let Err(mut response) =
                shared.guard.check_origin(&request).and_then(|()| shared.guard.check_token(&request))
            {
                shared.guard.protect(&mut response, shared.in_frame);
                connection.send(&response, false).ok();
                return;
            }
            stream_news(&mut connection, shared).ok();
            return;
        }
        // A fault in one answer is not the end of the review.
        let answer = std::panic::AssertUnwindSafe(|| routes::answer(&request, shared));
        let mut response = std::panic::catch_unwind(answer)
            .unwrap_or_else(|_| Response::error(Status::Failed, "a fault in a2lp; please report it"));
        shared.guard.protect(&mut response, shared.in_frame);
        if connection.send(&response, request.keeps_alive).is_err() || !request.keeps_alive {
            return;
        }
    }
}

/// Sends a page everything that [`Shared::tell`] says, as server-sent events.
fn stream_news(connection: &mut Connection, shared: &Shared) -> std::io::Result<()> {
    let mut response = Response::new("text/event-stream", "");
    shared.guard.protect(&mut response, shared.in_frame);
    connection.start(&response)?;
    let mut seen = shared.news().count;
    connection.push(": hello\n\n")?;
    while !shared.stops() {
        let news = shared.news();
        let (news, waited) = shared
            .has_news
            .wait_timeout_while(news, HEARTBEAT, |news| news.count == seen && !shared.stops())
            .unwrap_or_else(PoisonError::into_inner);
        let new = usize::try_from(news.count - seen).unwrap_or(usize::MAX).min(news.messages.len());
        let messages: Vec<String> = news.messages.iter().rev().take(new).rev().cloned().collect();
        seen = news.count;
        drop(news);
        if waited.timed_out() {
            connection.push(": still here\n\n")?;
        }
        for message in messages {
            connection.push(&format!("data: {message}\n\n"))?;
        }
    }
    Ok(())
}

/// Stops a full run when the server stops.
struct StopWith<'a>(&'a Shared);

impl a2lp::Observer for StopWith<'_> {
    fn progress(&self, _: a2lp::Stage, _: u64, _: u64) -> ControlFlow<()> {
        if self.0.stops() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Runs the full method whenever the person pauses after corrections, and puts its labels in place.
fn run_when_due(shared: &Shared) {
    while !shared.stops() {
        let state = shared.full_run();
        let left = state.called_for.map(|at| PAUSE.saturating_sub(at.elapsed()));
        match left {
            None => {
                drop(shared.full_run_changed.wait_timeout(state, HEARTBEAT));
                continue;
            }
            Some(left) if !left.is_zero() => {
                drop(shared.full_run_changed.wait_timeout(state, left));
                continue;
            }
            Some(_) => {}
        }
        let mut state = state;
        (state.called_for, state.is_running, state.is_unwanted) = (None, true, false);
        drop(state);
        let due = shared.review().session().due_run();
        let outcome = match due {
            Ok(Some(run)) => {
                shared.tell(&serde_json::json!({ "kind": "full-run", "state": "running" }));
                let finished = run.go(&StopWith(shared)).map_err(ReviewError::from);
                finished.and_then(|finished| {
                    let mut review = shared.review();
                    match shared.full_run().is_unwanted {
                        true => Ok(None),
                        false => review.replace(finished).map(Some),
                    }
                })
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        let mut state = shared.full_run();
        state.is_running = false;
        match outcome {
            _ if shared.stops() => return,
            Ok(Some(effect)) => {
                drop(state);
                let changed = effect.changed.len();
                shared.tell(&serde_json::json!({ "kind": "full-run", "state": "done", "changed": changed }));
            }
            Ok(None) => {}
            Err(error) => {
                state.failed = Some(error.to_string());
                drop(state);
                shared.tell(&serde_json::json!({ "kind": "full-run", "state": "failed", "message": error.to_string() }));
            }
        }
    }
}
