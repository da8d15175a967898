//! `a2lp review`: find the run → run it again → journal → page.

mod looks;
mod past_run;

use crate::Outcome;
use crate::args::ReviewArgs;
use crate::interrupt;
use crate::output::{check_folder, journal_path, refuse_existing, write_json};
use crate::progress::ProgressBars;
use a2lp_data::{check_labels_path, read_label_rows, write_atomically};
use a2lp_report::{Layout, Watcher};
use a2lp_review::{Certificate, FullRun, Journal, Past, Review, Server, Serving, Session, verify};
use anyhow::{Context, bail};
use past_run::PastRun;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

pub(crate) fn run(args: &ReviewArgs) -> anyhow::Result<Outcome> {
    if let Some(certificate) = &args.verify {
        return check_certificate(certificate, &args.labels);
    }
    if let Some(out) = &args.export {
        check_labels_path(out, args.force)?;
        check_folder(out)?;
        for path in args.certificate.iter().chain(&args.corrections) {
            refuse_existing(path, args.force)?;
            check_folder(path)?;
        }
    }
    let past_run = PastRun::read(&args.labels, args.threads)?;
    let journal = journal_path(&args.labels);
    // Before the long part: a second review of the same labels is refused at once.
    let (journal, past) = Journal::open(&journal, &past_run.task.fingerprint)?;
    if past.torn_bytes > 0 {
        eprintln!(
            "note: the last line of the journal was cut off, so it was never acknowledged; it is dropped"
        );
    }
    let looks = match args.export {
        Some(_) => Default::default(),
        None => looks::find(args, &past_run)?,
    };
    let (session, map) = open_session(&past_run, &past)?;
    if !past.events.is_empty() {
        eprintln!(
            "note: the review goes on: {} corrected or confirmed, {} checked",
            session.corrections().len(),
            session.answers().len()
        );
    }
    let mut review = Review::new(session, Some(journal));
    if args.export.is_some() {
        return export(args, &mut review);
    }
    let serving = Serving {
        looks,
        map: Some(map),
        address: args.host,
        host: args.host_name.clone(),
        port: args.port,
        in_frame: false,
        without_full_runs: args.no_full_runs,
    };
    serve(args, review, serving)
}

/// Runs the method as the run did, with the corrections that the journal holds, and takes the session up.
fn open_session(run: &PastRun, past: &Past) -> anyhow::Result<(Session, a2lp_report::trace::Map)> {
    let full_run = FullRun::last(run.task.clone(), &past.events)?;
    let parameters = &run.task.parameters;
    let watcher = Watcher::new(full_run.domains(), parameters, None);
    let layout = Layout::new(full_run.domains().features(), parameters)?;
    let finished = full_run.go(&(ProgressBars::default(), &watcher))?;
    let is_first = !past.events.iter().any(|event| matches!(event, a2lp_review::Event::Rerun { .. }));
    if is_first {
        run.check_same(finished.labelling())?;
    }
    let trace = watcher.trace(&layout, finished.labelling(), None, run.task.ids.as_deref());
    let session = Session::new(run.task.clone(), past.seed, &past.events, finished)?;
    Ok((session, trace.map))
}

fn serve(args: &ReviewArgs, review: Review, serving: Serving) -> anyhow::Result<Outcome> {
    if let Some(address) = args.host.filter(|address| !address.is_loopback()) {
        eprintln!(
            "warning: the page can be reached from other machines ({address}). Whoever has its address can change labels, and \
             nothing is encrypted on the way"
        );
    }
    let server = Server::start(review, serving)?;
    let url = server.url();
    println!("{url}");
    std::io::stdout().flush()?;
    eprintln!("Open this address in a browser. Everything is kept as it happens; Ctrl-C ends the review.");
    if !args.no_browser && !open_browser(&url) {
        eprintln!("note: no browser could be started");
    }
    while !interrupt::requested() {
        std::thread::sleep(Duration::from_millis(100));
    }
    server.stop();
    eprintln!(
        "\nThe review is kept in {}; the same command goes on with it.",
        journal_path(&args.labels).display()
    );
    Ok(Outcome::Done)
}

/// Asks the system to open a page. The address holds the token, so it goes through no shell.
fn open_browser(url: &str) -> bool {
    use std::process::{Command, Stdio};
    let (program, arguments): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[url]),
        "windows" => ("explorer", &[url]),
        _ => ("xdg-open", &[url]),
    };
    let quiet = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    quiet.is_ok()
}

fn export(args: &ReviewArgs, review: &mut Review) -> anyhow::Result<Outcome> {
    let Some(out) = &args.export else { return Ok(Outcome::Done) };
    // The labels are looked at now, so the check speaks of them.
    let has_answers = !review.session().answers().is_empty();
    if has_answers {
        review.look()?;
    } else if args.certificate.is_some() {
        bail!("nothing was checked, so there is nothing to certify; nothing was written");
    }
    let session = review.session_mut();
    session.write_labels(out, args.force, false, None)?;
    println!("labels in {}", out.display());
    if let Some(path) = &args.certificate {
        let certificate = session.certificate(None)?;
        write_json(path, args.force, &certificate)?;
        println!("certificate in {}: {}", path.display(), certificate.statement);
    }
    if let Some(path) = &args.corrections {
        let text = match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => session.corrections_csv(),
            Some("json") => session.corrections_json().to_string() + "\n",
            _ => bail!("{}: corrections are written as .csv or .json", path.display()),
        };
        write_atomically(path, args.force, |file| file.write_all(text.as_bytes()))?;
        println!("corrections in {}", path.display());
    }
    Ok(Outcome::Done)
}

fn check_certificate(certificate: &Path, labels: &Path) -> anyhow::Result<Outcome> {
    let text = std::fs::read_to_string(certificate).with_context(|| certificate.display().to_string())?;
    let certificate: Certificate = serde_json::from_str(&text)
        .with_context(|| format!("{}: not a certificate of `a2lp review`", certificate.display()))?;
    let rows = read_label_rows(labels)?;
    match verify(&certificate, &rows) {
        Ok(holds) => {
            println!("yes: {}", certificate.statement);
            holds.iter().for_each(|line| println!("  {line}"));
            println!("It assumes: {}", certificate.assumes.join(" "));
            Ok(Outcome::Done)
        }
        Err(reason) => {
            println!("no: {reason}");
            Ok(Outcome::LookAtIt)
        }
    }
}
