//! What the page can ask for, and the answers.

use super::Shared;
use super::http::{Request, Response, Status};
use crate::error::ReviewError;
use crate::event::{AuditSettings, Event};
use crate::session::{Effect, Origin, Session};
use a2lp_report::class_colour;
use base64::Engine;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Most items that one answer describes.
const MAX_ITEMS: usize = 1000;
/// Groups of items in the list of doubtful ones, unless asked otherwise.
const GROUPS: usize = 24;

/// The files of the page. They hold no data, and a browser cannot send the token when it opens the page.
const FILES: [(&str, &str, &str); 12] = {
    const HTML: &str = "text/html; charset=utf-8";
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    const STYLE: &str = "text/css; charset=utf-8";
    [
        ("/", HTML, include_str!("../page/index.html")),
        ("/script.js", SCRIPT, include_str!("../page/script.js")),
        ("/page.js", SCRIPT, include_str!("../page/page.js")),
        ("/items.js", SCRIPT, include_str!("../page/items.js")),
        ("/check.js", SCRIPT, include_str!("../page/check.js")),
        ("/correct.js", SCRIPT, include_str!("../page/correct.js")),
        ("/live_map.js", SCRIPT, include_str!("../page/live_map.js")),
        ("/finish.js", SCRIPT, include_str!("../page/finish.js")),
        ("/map.js", SCRIPT, a2lp_report::MAP_SCRIPT),
        ("/report.css", STYLE, a2lp_report::STYLE),
        ("/style.css", STYLE, include_str!("../page/style.css")),
        ("/icon.svg", "image/svg+xml", include_str!("../page/icon.svg")),
    ]
};

type Answer = Result<Response, Response>;

pub(super) fn answer(request: &Request, shared: &Shared) -> Response {
    let checked = shared.guard.check_origin(request);
    checked.and_then(|()| route(request, shared)).unwrap_or_else(|refusal| refusal)
}

fn route(request: &Request, shared: &Shared) -> Answer {
    let wants_post = matches!(
        request.path.as_str(),
        "/api/correct" | "/api/answer" | "/api/undo" | "/api/promise" | "/api/full-run"
    );
    match FILES.iter().find(|(path, ..)| *path == request.path) {
        Some(_) if request.is_post => {
            return Err(Response::error(Status::MethodNotAllowed, "another method is needed"));
        }
        Some(&(_, content_type, text)) => return Ok(Response::new(content_type, text)),
        None if !request.path.starts_with("/api/") => {
            return Err(Response::error(Status::NotFound, "there is no such page"));
        }
        None => {}
    }
    shared.guard.check_token(request)?;
    if request.is_post != wants_post {
        return Err(Response::error(Status::MethodNotAllowed, "another method is needed"));
    }
    match request.path.as_str() {
        "/api/correct" => correct(request, shared),
        "/api/answer" => take_answer(request, shared),
        "/api/undo" => body::<Empty>(request).and_then(|_| act(shared, &Event::Undo)),
        "/api/promise" => {
            body(request).and_then(|settings: AuditSettings| act(shared, &Event::Promise(settings)))
        }
        "/api/full-run" => {
            body::<Empty>(request)?;
            shared.hurry_full_run();
            Ok(Response::json(&summary(shared)))
        }
        "/api/session" => Ok(Response::json(&summary(shared))),
        "/api/check" => check(request, shared),
        "/api/groups" => {
            let count = number(request, "count")?.unwrap_or(GROUPS).min(MAX_ITEMS);
            let groups = shared.review().session().groups(count);
            Ok(Response::json(&json!({ "groups": groups })))
        }
        "/api/items" => items(request, shared),
        "/api/labels" => Ok(Response::json(&labels(shared.review().session()))),
        "/api/map" => Ok(Response::json(&json!({ "map": shared.map }))),
        "/api/export" => export(request, shared),
        "/api/certificate" => {
            let certificate = shared.review().session_mut().certificate(number(request, "accept")?);
            Ok(attachment("certificate.json", Response::json(&certificate.map_err(refusal)?)))
        }
        "/api/corrections" => {
            let review = shared.review();
            match request.parameter("format") {
                Some("csv") => {
                    let text = review.session().corrections_csv();
                    Ok(attachment("corrections.csv", Response::new("text/csv; charset=utf-8", text)))
                }
                Some("json") => {
                    let tasks = Response::json(&review.session().corrections_json());
                    Ok(attachment("corrections.json", tasks))
                }
                _ => Err(Response::error(Status::BadRequest, "corrections come as csv or json")),
            }
        }
        path => match path.strip_prefix("/api/picture/") {
            Some(item) => picture(item, request, shared),
            None => text(path, shared),
        },
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Correction {
    labels: Vec<(u64, Option<String>)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    row: u64,
    said: Option<String>,
}

/// The body of a request as JSON.
fn body<T: DeserializeOwned>(request: &Request) -> Result<T, Response> {
    if request.header("content-type") != Some("application/json") {
        return Err(Response::error(Status::UnsupportedType, "a body of type application/json is needed"));
    }
    serde_json::from_slice(&request.body)
        .map_err(|_| Response::error(Status::BadRequest, "the body is not what was asked for"))
}

/// A parameter that is a number.
fn number(request: &Request, name: &str) -> Result<Option<usize>, Response> {
    let wrong = |_| Response::error(Status::BadRequest, "a parameter is not a number");
    request.parameter(name).map(|text| text.parse().map_err(wrong)).transpose()
}

fn refusal(error: ReviewError) -> Response {
    match error {
        ReviewError::Refused(message) => Response::error(Status::Conflict, &message),
        other => Response::error(Status::Failed, &other.to_string()),
    }
}

fn attachment(name: &str, mut response: Response) -> Response {
    response.headers.push(("Content-Disposition", format!("attachment; filename=\"{name}\"")));
    response
}

fn correct(request: &Request, shared: &Shared) -> Answer {
    let Correction { labels } = body(request)?;
    act(shared, &Event::Correct { labels })
}

fn take_answer(request: &Request, shared: &Shared) -> Answer {
    let Said { row, said } = body(request)?;
    act(shared, &Event::Answer { row, said })
}

/// Lets an event happen and tells all pages.
fn act(shared: &Shared, event: &Event) -> Answer {
    let mut review = shared.review();
    let effect = review.act(event).map_err(refusal)?;
    let is_due = matches!(event, Event::Correct { .. } | Event::Undo) && review.session().is_run_due();
    drop(review);
    if is_due {
        shared.call_for_full_run();
    }
    shared.tell(&json!({ "kind": "changed" }));
    Ok(Response::json(&json!({ "effect": effect_view(&effect), "session": summary(shared) })))
}

fn effect_view(effect: &Effect) -> Value {
    let Effect { items, changed, passed_over } = effect;
    json!({
        "clicks": items.len(),
        "changed": changed.len(),
        "changed_items": &changed[..changed.len().min(MAX_ITEMS)],
        "passed_over": passed_over,
    })
}

/// What every page shows at its edges.
fn summary(shared: &Shared) -> Value {
    let full_run = {
        let state = shared.full_run();
        let word = match () {
            () if state.is_running => "running",
            () if state.called_for.is_some() && shared.runs_full => "waiting",
            () if state.failed.is_some() => "failed",
            () => "idle",
        };
        json!({ "state": word, "message": state.failed })
    };
    let review = shared.review();
    let session = review.session();
    let labelling = session.labelling();
    let counts = labelling.pseudo_labels.class_counts();
    let classes = labelling.classes.names();
    json!({
        "title": session.task().title,
        "items": labelling.pseudo_labels.len(),
        "method": labelling.method.to_string(),
        "classes": classes,
        "colours": (0..classes.len()).map(class_colour).collect::<Vec<_>>(),
        "counts": counts,
        "in_use": session.classes_in_use(),
        "unlabelled": labelling.pseudo_labels.len() - counts.iter().sum::<usize>(),
        "corrections": session.corrections().len(),
        "answers": session.answers().len(),
        "can_undo": session.can_undo(),
        "has_pictures": shared.looks.has_pictures(),
        "has_texts": shared.looks.has_texts(),
        "has_map": shared.map.is_some(),
        "full_run": full_run,
        "events": session.events(),
    })
}

/// The check. If a full run would replace the labels in a moment, it is worth waiting for: `as_is=1` does not.
fn check(request: &Request, shared: &Shared) -> Answer {
    if request.parameter("as_is").is_some() {
        shared.forget_full_run();
    } else if shared.awaits_full_run() && shared.review().session().is_run_due() {
        shared.hurry_full_run();
        return Ok(Response::json(&json!({ "waiting": true })));
    }
    let mut review = shared.review();
    let check = review.look().map_err(refusal)?;
    let next = check.next.map(|item| review.session().item_view(item));
    Ok(Response::json(&json!({ "waiting": false, "check": check, "next": next })))
}

fn items(request: &Request, shared: &Shared) -> Answer {
    let wrong = || Response::error(Status::BadRequest, "items are numbers with commas between them");
    let list = request.parameter("items").unwrap_or_default();
    let items: Vec<usize> = list
        .split(',')
        .filter(|text| !text.is_empty())
        .map(|text| text.parse().map_err(|_| wrong()))
        .collect::<Result<_, _>>()?;
    let review = shared.review();
    let session = review.session();
    let count = session.labelling().pseudo_labels.len();
    if items.len() > MAX_ITEMS || items.iter().any(|&item| item >= count) {
        return Err(Response::error(Status::BadRequest, "too many items, or items that do not exist"));
    }
    let views: Vec<_> = items.into_iter().map(|item| session.item_view(item)).collect();
    Ok(Response::json(&json!({ "items": views })))
}

/// Label, confidence and origin of all items, packed for the map.
fn labels(session: &Session) -> Value {
    let labels = &session.labelling().pseudo_labels;
    let no_class = a2lp_report::trace::NO_CLASS;
    let packed = |label: &Option<u32>| label.map_or(no_class, |class| class.min(u32::from(no_class)) as u16);
    let classes: Vec<u8> = labels.labels().iter().map(packed).flat_map(u16::to_le_bytes).collect();
    let confidence: Vec<u8> = labels.confidence().iter().map(|c| (c * 255.0).round() as u8).collect();
    let origin = |item: usize| match session.origin(item) {
        Origin::Propagated => 0,
        Origin::Corrected => 1,
        Origin::Checked => 2,
    };
    let origins: Vec<u8> = (0..labels.len()).map(origin).collect();
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    json!({ "labels": encode(&classes), "confidence": encode(&confidence), "origins": encode(&origins) })
}

/// The labels as a file, in any format of a labels file.
fn export(request: &Request, shared: &Shared) -> Answer {
    let format = request.parameter("format").unwrap_or("csv");
    if !format.bytes().all(|byte| byte.is_ascii_alphanumeric()) || format.len() > 16 {
        return Err(Response::error(Status::BadRequest, "there is no such format"));
    }
    let probabilities = request.parameter("probabilities") == Some("1");
    let accept = number(request, "accept")?;
    let failed = |error: std::io::Error| Response::error(Status::Failed, &error.to_string());
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = folder.path().join(format!("labels.{format}"));
    let written = shared.review().session_mut().write_labels(&path, false, probabilities, accept);
    match written {
        Ok(()) => {}
        Err(ReviewError::Data(error)) => {
            return Err(Response::error(Status::BadRequest, &error.problem.to_string()));
        }
        Err(error) => return Err(refusal(error)),
    }
    let bytes = std::fs::read(&path).map_err(failed)?;
    Ok(attachment(&format!("labels.{format}"), Response::new("application/octet-stream", bytes)))
}

fn no_such_item() -> Response {
    Response::error(Status::NotFound, "there is no such item")
}

fn picture(item: &str, request: &Request, shared: &Shared) -> Answer {
    let item: usize = item.parse().map_err(|_| no_such_item())?;
    let is_small = request.parameter("size") != Some("large");
    let (content_type, bytes) = shared.looks.picture(item, is_small).ok_or_else(no_such_item)?;
    Ok(Response::new(content_type, bytes))
}

fn text(path: &str, shared: &Shared) -> Answer {
    let item = path.strip_prefix("/api/text/").and_then(|item| item.parse::<usize>().ok());
    let text = item.and_then(|item| shared.looks.text(item));
    text.map(|text| Response::json(&json!({ "text": text }))).ok_or_else(no_such_item)
}
