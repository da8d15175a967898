//! A headless Chromium, driven over its own DevTools protocol through a pair of pipes. Needs nothing but the browser.

// Each test uses some of it.
#![allow(dead_code)]

use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A Chromium on this machine: `A2LP_CHROMIUM`, or one of the usual names.
fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("A2LP_CHROMIUM") {
        return Some(named.into());
    }
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
}

/// A page open in a browser.
pub(crate) struct Page {
    browser: Child,
    requests: File,
    answers: Receiver<Value>,
    session: Option<String>,
    next: u64,
    /// What the page complained about, and what it asked the network for.
    pub(crate) complaints: Vec<String>,
    scratch: tempfile::TempDir,
    /// What the page may ask for.
    origin: String,
}

impl Page {
    /// Opens a file. `None`, noted for the end of `make test`, when there is no Chromium.
    pub(crate) fn open(file: &Path) -> Option<Page> {
        Self::open_url(&format!("file://{}", file.display()))
    }

    /// Opens an address; a page may ask its own server, and no other.
    pub(crate) fn open_url(url: &str) -> Option<Page> {
        let notes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser-tests");
        fs::create_dir_all(&notes).unwrap();
        let Some(program) = find() else {
            fs::write(notes.join("skipped"), "").unwrap();
            eprintln!("SKIPPED: no Chromium found; install one or name it in A2LP_CHROMIUM");
            return None;
        };
        fs::write(notes.join("ran"), "").unwrap();

        let scratch = tempfile::tempdir().unwrap();
        let (requests, answers) = (scratch.path().join("requests"), scratch.path().join("answers"));
        assert!(Command::new("mkfifo").args([&requests, &answers]).status().unwrap().success());
        // The protocol is spoken on descriptors 3 and 4.
        let browser = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<"$REQUESTS" 4>"$ANSWERS""#])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
            ])
            .args(["--remote-debugging-pipe", "--no-first-run", "--window-size=1200,1000"])
            .arg(format!("--user-data-dir={}", scratch.path().join("profile").display()))
            .env("REQUESTS", &requests)
            .env("ANSWERS", &answers)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(scratch.path().join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let requests = File::options().write(true).open(&requests).unwrap();
        let mut from = BufReader::new(File::open(&answers).unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while from.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                if let Ok(value) = serde_json::from_slice(&message)
                    && sender.send(value).is_err()
                {
                    return;
                }
                message.clear();
            }
        });
        let complaints = Vec::new();
        let origin = String::new();
        let mut page =
            Page { browser, requests, answers, session: None, next: 1, complaints, scratch, origin };
        let target = page.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = page.ask("Target.attachToTarget", attach);
        page.session = Some(session["sessionId"].as_str().unwrap().to_string());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.ask(&format!("{domain}.enable"), json!({}));
        }
        page.go(url);
        Some(page)
    }

    /// Opens another address in the same window.
    pub(crate) fn go(&mut self, url: &str) {
        self.origin = url.split('/').take(3).collect::<Vec<_>>().join("/");
        self.ask("Page.navigate", json!({ "url": url }));
        self.wait_for("document.readyState === 'complete' && location.protocol !== 'about:'");
    }

    /// Loads the page again.
    pub(crate) fn reload(&mut self) {
        self.eval("window.isOld = true");
        self.ask("Page.reload", json!({}));
        self.wait_for("document.readyState === 'complete' && !window.isOld");
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        let mut request = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        self.requests.write_all(format!("{request}\0").as_bytes()).unwrap();
        let began = Instant::now();
        loop {
            let left = PATIENCE.checked_sub(began.elapsed()).unwrap_or_default();
            let Ok(message) = self.answers.recv_timeout(left) else {
                let said = fs::read_to_string(self.scratch.path().join("stderr")).unwrap_or_default();
                panic!("no answer to {method}; Chromium says:\n{said}");
            };
            if message["id"] == json!(id) {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    /// Keeps what a page should not do.
    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.complaints.push(params["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" if params["type"] == "error" => {
                self.complaints.push(params["args"].to_string())
            }
            "Log.entryAdded" if params["entry"]["level"] == "error" => {
                self.complaints.push(params["entry"]["text"].to_string());
            }
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                let is_own = ["data:", "blob:", &self.origin].iter().any(|own| url.starts_with(own));
                if !is_own {
                    self.complaints.push(format!("asked the network for {url}"));
                }
            }
            _ => {}
        }
    }

    /// The value of an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.ask("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        self.eval(expression).as_str().unwrap_or_default().to_string()
    }

    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        self.eval(expression).as_f64().unwrap_or_else(|| panic!("{expression} is no number"))
    }

    pub(crate) fn wait_for(&mut self, condition: &str) {
        let began = Instant::now();
        while self.eval(condition) != json!(true) {
            assert!(began.elapsed() < PATIENCE, "never came true: {condition}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Moves the mouse to a place in the window.
    pub(crate) fn point_at(&mut self, x: f64, y: f64) {
        self.ask("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// Draws a line with the mouse button held down.
    pub(crate) fn drag(&mut self, places: &[(f64, f64)]) {
        let event = |kind: &str, (x, y): (f64, f64)| json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
        self.ask("Input.dispatchMouseEvent", event("mousePressed", places[0]));
        for &place in &places[1..] {
            self.ask("Input.dispatchMouseEvent", event("mouseMoved", place));
        }
        self.ask("Input.dispatchMouseEvent", event("mouseReleased", places[places.len() - 1]));
    }

    /// Clicks the middle of the element that a selector finds, with the mouse.
    pub(crate) fn click(&mut self, selector: &str) {
        let place = self.eval(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center'}}); \
             const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; }})()"
        ));
        let (x, y) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.ask("Input.dispatchMouseEvent", event);
        }
    }

    /// Types into the element that a selector finds.
    pub(crate) fn type_into(&mut self, selector: &str, text: &str) {
        self.eval(&format!(
            "document.querySelector({selector:?}).focus(), document.querySelector({selector:?}).select?.()"
        ));
        self.ask("Input.insertText", json!({ "text": text }));
    }

    /// Presses a key on the element that a selector finds.
    pub(crate) fn press(&mut self, selector: &str, key: &str, code: u32) {
        self.eval(&format!("document.querySelector({selector:?}).focus()"));
        self.press_here(key, code);
    }

    /// Presses a key wherever the keyboard is.
    pub(crate) fn press_here(&mut self, key: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.ask("Input.dispatchKeyEvent", event);
        }
    }

    /// Chooses an entry of a select.
    pub(crate) fn choose(&mut self, selector: &str, value: &str) {
        self.eval(&format!(
            "(() => {{ const s = document.querySelector({selector:?}); s.value = {value:?}; \
             s.dispatchEvent(new Event('input', {{bubbles: true}})); s.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
        ));
    }

    /// Where downloads go.
    pub(crate) fn download_to(&mut self, folder: &Path) {
        let params = json!({ "behavior": "allow", "downloadPath": folder });
        self.ask("Browser.setDownloadBehavior", params);
    }

    /// Pretends that the reader likes dark pages.
    pub(crate) fn go_dark(&mut self) {
        let params = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
        self.ask("Emulation.setEmulatedMedia", params);
    }

    /// Pretends that the window is so large.
    pub(crate) fn resize(&mut self, width: u32, height: u32, mobile: bool) {
        let params = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.ask("Emulation.setDeviceMetricsOverride", params);
    }

    /// The page as printed.
    pub(crate) fn print(&mut self) -> Vec<u8> {
        self.base64("Page.printToPDF", json!({}))
    }

    /// Saves a picture of the whole page for people to look at.
    pub(crate) fn screenshot(&mut self, name: &str) {
        self.capture(name, true);
    }

    /// Saves a picture of what the window shows.
    pub(crate) fn screenshot_window(&mut self, name: &str) {
        self.capture(name, false);
    }

    fn capture(&mut self, name: &str, beyond_window: bool) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
        fs::create_dir_all(&folder).unwrap();
        let bytes = self.base64("Page.captureScreenshot", json!({ "captureBeyondViewport": beyond_window }));
        fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    fn base64(&mut self, method: &str, params: Value) -> Vec<u8> {
        use base64::Engine;
        let answer = self.ask(method, params);
        base64::engine::general_purpose::STANDARD.decode(answer["data"].as_str().unwrap()).unwrap()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.browser.kill().ok();
        self.browser.wait().ok();
    }
}
