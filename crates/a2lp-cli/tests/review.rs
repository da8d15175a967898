//! `a2lp review` as a program: what it keeps, what it refuses, and what attacks on its server come to.

#![cfg(unix)]

mod review_server;

use review_server::{Reviewed, a2lp};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A small labelled demo, as files.
fn demo(dir: &Path) {
    a2lp(dir, &["demo", "--out", "d", "--more-seeds", "0"]);
    a2lp(
        dir,
        &[
            "label",
            "--source",
            "d/source.npz",
            "--target",
            "d/target.npz",
            "--method",
            "a2lp",
            "--out",
            "labels.csv",
        ],
    );
}

fn refused(dir: &Path, args: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_a2lp")).current_dir(dir).args(args).output().unwrap();
    assert_eq!(out.status.code(), Some(2), "{args:?}");
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn a_review_is_kept_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    demo(dir.path());
    let mut server = Reviewed::start(dir.path(), &["labels.csv", "--no-full-runs"]);
    let (status, answer) =
        server.post("/api/correct", &json!({ "labels": [[3, "7"], [5, "a new, \"odd\" class"]] }));
    assert_eq!((status, &answer["effect"]["clicks"]), (200, &json!(2)), "{answer}");
    let (status, check) = server.get("/api/check");
    assert_eq!((status, &check["check"]["version"]), (200, &json!(1)), "{check}");
    let row = check["next"]["row"].as_u64().unwrap();
    assert_eq!(server.post("/api/answer", &json!({ "row": row, "said": "2" })).0, 200);
    let (_, before) = server.get("/api/labels");
    // A second review of the same labels would mix two journals.
    let error = refused(dir.path(), &["review", "labels.csv", "--no-browser"]);
    assert!(error.contains("another `a2lp review` has it open"), "{error}");
    server.kill();

    // A line that was cut off was never acknowledged.
    let journal = dir.path().join("labels.csv.review.jsonl");
    let mut text = fs::read_to_string(&journal).unwrap();
    text += "{\"at\":1,\"event\":\"corr";
    fs::write(&journal, text).unwrap();
    let server = Reviewed::start(dir.path(), &["labels.csv", "--no-full-runs"]);
    let (_, session) = server.get("/api/session");
    assert_eq!((&session["corrections"], &session["answers"]), (&json!(2), &json!(1)));
    assert_eq!(server.get("/api/labels").1, before);
    drop(server);

    // The same without a page, and the corrections in another run.
    a2lp(
        dir.path(),
        &[
            "review",
            "labels.csv",
            "--export",
            "out.csv",
            "--certificate",
            "c.json",
            "--corrections",
            "known.csv",
        ],
    );
    let out = fs::read_to_string(dir.path().join("out.csv")).unwrap();
    assert!(out.lines().nth(4).unwrap().contains(",7,1.000000,"), "{out}");
    assert_eq!(out.matches(",person,").count(), 3);
    let known = fs::read_to_string(dir.path().join("known.csv")).unwrap();
    assert!(known.contains("\"a new, \"\"odd\"\" class\",correction"), "{known}");
    let told = a2lp(dir.path(), &["review", "--verify", "c.json", "out.csv"]);
    assert!(String::from_utf8_lossy(&told.stdout).starts_with("yes: Nothing is signed off"));
    let changed = out.replacen(",0.", ",1.", 1);
    fs::write(dir.path().join("out.csv"), changed).unwrap();
    let told = Command::new(env!("CARGO_BIN_EXE_a2lp"))
        .current_dir(dir.path())
        .args(["review", "--verify", "c.json", "out.csv"])
        .output()
        .unwrap();
    assert!(told.status.code() != Some(0), "{told:?}");
    let args = [
        "label",
        "--source",
        "d/source.npz",
        "--target",
        "d/target.npz",
        "--known",
        "known.csv",
        "--out",
        "l2.csv",
    ];
    a2lp(dir.path(), &args);
    let labels = fs::read_to_string(dir.path().join("l2.csv")).unwrap();
    assert_eq!(labels.matches(",person").count(), 3);
    assert!(labels.contains("\"a new, \"\"odd\"\" class\""));
}

#[test]
fn what_cannot_be_reviewed_says_why() {
    let dir = tempfile::tempdir().unwrap();
    demo(dir.path());
    let at = |name: &str| dir.path().join(name);
    assert!(refused(dir.path(), &["review", "nothing.csv"]).contains("no such file"));
    fs::write(at("bad.csv"), "row,label\n5000,7\n").unwrap();
    let label =
        ["label", "--source", "d/source.npz", "--target", "d/target.npz", "--out", "x.csv", "--known"];
    let with = |known: &str| refused(dir.path(), &[&label[..], &[known]].concat());
    assert!(with("bad.csv").contains("row 5000, but the target has 1000 rows"));
    assert!(with("nothing.csv").contains("nothing.csv"));
    assert!(
        refused(dir.path(), &["review", "labels.csv", "--images", "d"]).contains("no file is named like")
    );
    assert!(refused(dir.path(), &["review", "labels.csv", "--text", "x"]).contains("a file and a column"));
    let error =
        refused(dir.path(), &["review", "labels.csv", "--export", "e.csv", "--certificate", "c0.json"]);
    assert!(error.contains("nothing to certify") && !at("e.csv").exists(), "{error}");
    fs::write(at("c.json"), "{}").unwrap();
    assert!(
        refused(dir.path(), &["review", "--verify", "c.json", "labels.csv"]).contains("not a certificate")
    );
    // Other features under the same name give other labels.
    fs::copy(at("d/source.npz"), at("d/target.npz")).unwrap();
    assert!(refused(dir.path(), &["review", "labels.csv"]).contains("other data"));
}

#[test]
fn pictures_and_texts_come_from_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    demo(dir.path());
    fs::create_dir_all(dir.path().join("photos/deep")).unwrap();
    // The smallest GIF, under an id and under a row; and something that is no picture.
    let gif = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
    fs::write(dir.path().join("photos/deep/drawing-00002.gif"), gif).unwrap();
    fs::write(dir.path().join("photos/5.gif"), gif).unwrap();
    fs::write(dir.path().join("photos/7.gif"), "<script>alert(1)</script>").unwrap();
    let texts: String = (0..1000).map(|row| format!("{row},\"text <i>{row}</i>\"\n")).collect();
    fs::write(dir.path().join("texts.csv"), "row,words\n".to_string() + &texts).unwrap();
    let server =
        Reviewed::start(dir.path(), &["labels.csv", "--images", "photos", "--text", "texts.csv:words"]);
    let ask = |path: &str| {
        let (address, token) = (&server.address, &server.token);
        server.raw(
            format!(
                "GET {path} HTTP/1.1\r\nHost: {address}\r\nX-A2LP-Token: {token}\r\nConnection: close\r\n\r\n"
            )
            .as_bytes(),
        )
    };
    for item in [5, 2] {
        let (status, answer) = ask(&format!("/api/picture/{item}"));
        assert!(status == 200 && answer.contains("Content-Type: image/"), "{item}: {answer}");
    }
    assert_eq!(ask("/api/picture/7").0, 404, "what is no picture is not sent");
    assert_eq!(ask("/api/picture/8").0, 404);
    assert_eq!(server.get("/api/text/12").1, json!({ "text": "text <i>12</i>" }));
    assert_eq!(server.get("/api/text/1000").0, 404);
}

#[test]
fn attacks_come_to_nothing() {
    let dir = tempfile::tempdir().unwrap();
    demo(dir.path());
    let server = Reviewed::start(dir.path(), &["labels.csv", "--no-full-runs"]);
    let (address, token) = (server.address.clone(), server.token.clone());
    let port = address.rsplit(':').next().unwrap().to_string();
    assert_eq!(token.len(), 32, "128 bits");
    let request = |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        if method == "POST" {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        server.raw(format!("{text}\r\n{body}").as_bytes())
    };
    let own = ("Host", address.as_str());
    let key = ("X-A2LP-Token", token.as_str());
    let json_type = ("Content-Type", "application/json");
    let click = r#"{"labels":[[1,"7"]]}"#;

    // The page itself holds no data; everything else needs the token.
    let (status, page) = request("GET", "/", &[own], "");
    assert_eq!(status, 200);
    assert!(!page.contains(&token) && !page.contains("drawing-"));
    for path in [
        "/api/session",
        "/api/labels",
        "/api/groups",
        "/api/check",
        "/api/map",
        "/api/picture/1",
        "/api/export",
        "/api/events",
    ] {
        assert_eq!(request("GET", path, &[own], "").0, 403, "{path}");
        let wrong = format!("{}0", &token[..31]);
        let wrong = if wrong == token { format!("{}1", &token[..31]) } else { wrong };
        for bad in [wrong.as_str(), "", &token[..31], &format!("{token}0")] {
            assert_eq!(request("GET", path, &[own, ("X-A2LP-Token", bad)], "").0, 403, "{path} {bad}");
        }
        // Neither in the address nor in a cookie.
        assert_eq!(request("GET", &format!("{path}?token={token}"), &[own, ("Cookie", &token)], "").0, 403);
    }
    assert_eq!(request("POST", "/api/correct", &[own, json_type], click).0, 403);

    // DNS rebinding: the browser is led here under another name.
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "127.0.0.1",
        &format!("127.0.0.1.evil.example:{port}"),
    ] {
        assert_eq!(request("GET", "/api/session", &[("Host", host), key], "").0, 403, "{host}");
        assert_eq!(request("GET", "/", &[("Host", host)], "").0, 403, "{host}");
    }
    assert_eq!(request("GET", "/api/session", &[key], "").0, 400, "no host");
    assert_eq!(request("GET", "/api/session", &[own, ("Host", "evil.example"), key], "").0, 400, "two hosts");
    assert_eq!(request("GET", "/api/session", &[("Host", &format!("localhost:{port}")), key], "").0, 200);

    // Pages of other sites, even if they had the token.
    for origin in [
        "http://evil.example",
        "null",
        &format!("https://{address}"),
        &format!("http://{address}.evil.example"),
        "http://127.0.0.1:1",
    ] {
        assert_eq!(
            request("POST", "/api/correct", &[own, key, json_type, ("Origin", origin)], click).0,
            403,
            "{origin}"
        );
    }
    assert_eq!(request("GET", "/api/session", &[own, key, ("Sec-Fetch-Site", "cross-site")], "").0, 403);
    // A form of another site cannot send this type.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        assert_eq!(
            request("POST", "/api/correct", &[own, key, ("Content-Type", kind)], click).0,
            415,
            "{kind}"
        );
    }
    assert_eq!(request("GET", "/api/correct", &[own, key], "").0, 405);
    assert_eq!(request("POST", "/api/session", &[own, key, json_type], "{}").0, 405);
    assert_eq!(request("POST", "/", &[own, key, json_type], "{}").0, 405);

    // Headers that keep the page to itself.
    let (_, answer) = request("GET", "/", &[own], "");
    let head = answer.split("\r\n\r\n").next().unwrap();
    assert!(
        head.contains("Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self';"),
        "{head}"
    );
    assert!(!head.contains("unsafe-inline") && head.contains("frame-ancestors 'none'"));
    for name in ["X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer", "Cache-Control: no-store"]
    {
        assert!(head.contains(name), "{name}");
    }
    assert!(!answer.contains("<script>") && !answer.contains(" onclick=") && !answer.contains("style=\""));

    // Paths out of the session.
    for path in [
        "/api/picture/../../../etc/passwd",
        "/api/picture/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/api/picture//etc/passwd",
        "/api/picture/-1",
        "/api/picture/99999999999999999999",
        "/api/picture/1e3",
        "/api/text/../labels.csv",
        "/../labels.csv",
        "/labels.csv",
        "/d/truth.txt",
        "/api/",
        "/api/nothing",
    ] {
        assert_eq!(request("GET", path, &[own, key], "").0, 404, "{path}");
    }
    for path in [
        "/api/export?format=../../x",
        "/api/export?format=exe",
        "/api/groups?count=-1",
        "/api/items?items=1,x",
        "/api/items?items=5000",
    ] {
        assert_eq!(request("GET", path, &[own, key], "").0, 400, "{path}");
    }

    // Bodies that are too large, of the wrong shape, or about nothing.
    let post = |path: &str, body: &str| request("POST", path, &[own, key, json_type], body).0;
    assert_eq!(
        server
            .raw(
                format!("POST /api/correct HTTP/1.1\r\nHost: {address}\r\nContent-Length: 5000000\r\n\r\n")
                    .as_bytes()
            )
            .0,
        413
    );
    for body in [
        "",
        "[]",
        "{",
        "{\"labels\":[[1,2]]}",
        "{\"labels\":[[1.5,\"a\"]]}",
        "{\"labels\":[],\"more\":1}",
        "\u{1}",
    ] {
        assert_eq!(post("/api/correct", body), 400, "{body}");
    }
    for body in [
        r#"{"labels":[]}"#,
        r#"{"labels":[[5000,"7"]]}"#,
        r#"{"labels":[[1,""]]}"#,
        r#"{"labels":[[1,"a\u0000b"]]}"#,
    ] {
        assert_eq!(post("/api/correct", body), 409, "{body}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(post("/api/correct", &deep), 400);

    // Nothing of all this reached the session.
    let (_, session) = server.get("/api/session");
    assert_eq!((&session["corrections"], &session["answers"]), (&json!(0), &json!(0)));
    let journal = fs::read_to_string(dir.path().join("labels.csv.review.jsonl")).unwrap();
    // Only that the check was looked at.
    assert!(journal.lines().skip(1).all(|line| line.contains("\"version\"")), "{journal}");

    // Names are kept as they are given, and files quote them.
    let nasty = "</script><img src=x onerror=alert(1)>\"',;=cmd|'/C calc'!A0";
    let (status, _) = server.post("/api/correct", &json!({ "labels": [[1, nasty]] }));
    assert_eq!(status, 200);
    let (_, items) = server.get("/api/items?items=1");
    assert_eq!(items["items"][0]["label"], Value::String(nasty.into()));
}
