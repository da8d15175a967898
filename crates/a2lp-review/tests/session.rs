//! Sessions without files and without a network: what a person does, and what follows.

use a2lp::{Domains, KnownLabels, Labels, Method, Parameters, Run, Unknown};
use a2lp_data::demo;
use a2lp_data::read_label_rows;
use a2lp_review::{AuditSettings, Event, FullRun, Origin, Seed, Session, Task, verify};
use std::sync::Arc;

const PER_CLASS: usize = 30;

struct Fixture {
    task: Arc<Task>,
    truth: Vec<String>,
}

fn fixture(method: Method) -> Fixture {
    let (source, target) = (demo::source(0, PER_CLASS), demo::target(0, PER_CLASS));
    let truth = target.labels.iter().map(|label| label.to_string()).collect();
    let domains = Domains::new(source.features, Labels::new(&source.labels), target.features).unwrap();
    let parameters = Parameters::new().method(method).neighbours(10).rounds(4).unknown(Unknown::Off);
    let task = Task {
        domains,
        parameters: parameters.check().unwrap(),
        graph: None,
        rows: None,
        ids: None,
        title: "demo".into(),
        fingerprint: "run".into(),
    };
    Fixture { task: Arc::new(task), truth }
}

fn open(task: &Arc<Task>, events: &[Event]) -> Session {
    let finished = FullRun::last(task.clone(), events).unwrap().go(&()).unwrap();
    Session::new(task.clone(), Seed([7; 16]), events, finished).unwrap()
}

/// Lets an event happen and keeps it, as a server does.
fn act(session: &mut Session, events: &mut Vec<Event>, event: Event) -> a2lp_review::Effect {
    session.check(&event).unwrap();
    events.push(event.clone());
    session.apply(&event).unwrap()
}

fn look(session: &mut Session, events: &mut Vec<Event>) -> a2lp_review::CheckView {
    if let Some(event) = session.needed_version() {
        act(session, events, event);
    }
    session.check_view().unwrap()
}

fn correct(row: u64, label: &str) -> Event {
    Event::Correct { labels: vec![(row, Some(label.into()))] }
}

/// Answers truthfully until the wanted number of answers.
fn answer(session: &mut Session, events: &mut Vec<Event>, truth: &[String], count: usize) {
    for _ in 0..count {
        let Some(item) = look(session, events).next else { return };
        act(session, events, Event::Answer { row: item as u64, said: Some(truth[item].clone()) });
    }
}

fn labels(session: &Session) -> Vec<Option<String>> {
    let labelling = session.labelling();
    let name = |label: &Option<u32>| label.map(|class| labelling.classes.name(class).to_string());
    labelling.pseudo_labels.labels().iter().map(name).collect()
}

#[test]
fn a_session_goes_on_where_its_events_left_it() {
    for method in [Method::A2lp, Method::Consensus] {
        let Fixture { task, truth } = fixture(method);
        let (mut session, mut events) = (open(&task, &[]), Vec::new());
        let groups = session.groups(8);
        assert!(groups.len() >= 4 && groups.iter().all(|group| !group.items.is_empty()));
        for item in session.groups(6).into_iter().map(|group| group.items[0].item) {
            act(&mut session, &mut events, correct(item as u64, &truth[item]));
        }
        act(&mut session, &mut events, correct(3, "a new class"));
        // The full method takes the corrections over while two more come in.
        let due = session.due_run().unwrap().unwrap();
        act(&mut session, &mut events, correct(5, &truth[5]));
        act(&mut session, &mut events, correct(9, "wrong"));
        act(&mut session, &mut events, Event::Undo);
        let finished = due.go(&()).unwrap();
        events.push(finished.event());
        session.replace(finished).unwrap();
        answer(&mut session, &mut events, &truth, 12);
        act(&mut session, &mut events, Event::Undo);
        assert_eq!(session.answers().len(), 11);

        let mut again = open(&task, &events);
        assert_eq!(labels(&again), labels(&session), "{method:?}");
        assert_eq!(again.labelling().pseudo_labels, session.labelling().pseudo_labels);
        assert_eq!(again.corrections(), session.corrections());
        assert_eq!(again.answers(), session.answers());
        assert_eq!(again.needed_version(), None);
        let (a, b) = (again.check_view().unwrap(), session.check_view().unwrap());
        assert_eq!((a.next, a.version, a.answers, a.wrong), (b.next, b.version, b.answers, b.wrong));
        // What a person said stands.
        assert_eq!(labels(&again)[3].as_deref(), Some("a new class"));
        assert_eq!(again.origin(3), Origin::Corrected);
        assert_eq!(again.origin(9), Origin::Propagated);
    }
}

#[test]
fn corrections_help_the_items_nobody_spoke_of() {
    let Fixture { task, truth } = fixture(Method::A2lp);
    let (mut session, mut events) = (open(&task, &[]), Vec::new());
    let wrong_rest = |session: &Session| {
        let labels = labels(session);
        let rest = (0..truth.len()).filter(|&item| session.origin(item) == Origin::Propagated);
        rest.filter(|&item| labels[item].as_deref() != Some(&truth[item])).count()
    };
    let before = wrong_rest(&session);
    let mut changed = 0;
    for _ in 0..30 {
        let item = session.groups(1)[0].items[0].item;
        changed += act(&mut session, &mut events, correct(item as u64, &truth[item])).changed.len();
    }
    let after = wrong_rest(&session);
    assert!(changed > 0 && after + 10 < before, "{before} wrong before, {after} after");
}

#[test]
fn an_audit_speaks_of_one_version_and_a_correction_makes_another() {
    let Fixture { task, truth } = fixture(Method::A2lp);
    let (mut session, mut events) = (open(&task, &[]), Vec::new());
    act(&mut session, &mut events, correct(0, &truth[0]));
    let view = look(&mut session, &mut events);
    assert_eq!((view.version, view.delta, view.population), (1, 0.025, truth.len() - 1));
    answer(&mut session, &mut events, &truth, 5);
    let answered = session.answers()[0].0;
    // What was answered in the check does not propagate, and cannot be corrected.
    assert!(session.labelling().known.get(answered).is_none());
    assert!(session.check(&correct(answered as u64, "x")).is_err());
    assert!(session.groups(500).iter().all(|group| group.items.iter().all(|item| item.item != answered)));

    let item = session.groups(1)[0].items[0].item;
    act(&mut session, &mut events, correct(item as u64, &truth[item]));
    let next = (0..truth.len()).find(|&item| session.origin(item) == Origin::Propagated).unwrap();
    assert!(session.check(&Event::Answer { row: next as u64, said: None }).is_err(), "not looked at yet");
    let view = look(&mut session, &mut events);
    assert_eq!((view.version, view.delta, view.answers), (2, 0.0125, 5));
    // Taking the correction back brings the first version's labels back, but it was looked at anew.
    act(&mut session, &mut events, Event::Undo);
    assert_eq!(look(&mut session, &mut events).version, 3);
}

#[test]
fn final_labels_have_the_whole_of_delta_and_stay_final() {
    let Fixture { task, truth } = fixture(Method::A2lp);
    let (mut session, mut events) = (open(&task, &[]), Vec::new());
    let settings = AuditSettings { final_labels: true, max_error: 0.1, ..Default::default() };
    act(&mut session, &mut events, Event::Promise(settings));
    assert_eq!(look(&mut session, &mut events).delta, 0.05);
    answer(&mut session, &mut events, &truth, 1);
    assert!(session.check(&correct(0, "x")).unwrap_err().to_string().contains("final"));
    assert!(session.check(&Event::Promise(AuditSettings::default())).is_err());
    act(&mut session, &mut events, Event::Undo);
    assert!(session.check(&correct(0, "x")).is_err(), "taking the answer back does not make them less final");
    assert!(session.due_run().unwrap().is_none());
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let Fixture { task, .. } = fixture(Method::Lp);
    let mut session = open(&task, &[]);
    let before = session.events();
    let wrong = |max_error: f64| Event::Promise(AuditSettings { max_error, ..Default::default() });
    for event in [
        Event::Undo,
        correct(1_000_000, "x"),
        correct(0, " "),
        correct(0, "a\nb"),
        correct(0, &"x".repeat(300)),
        Event::Correct { labels: vec![] },
        Event::Answer { row: 0, said: Some("x".into()) },
        Event::Version { number: 7 },
        Event::Rerun { after: 9 },
        wrong(0.0),
        wrong(f64::NAN),
    ] {
        assert!(session.check(&event).is_err(), "{event:?}");
        assert!(session.apply(&event).is_err(), "{event:?}");
    }
    assert_eq!((session.events(), session.corrections().len()), (before, 0));
    assert!(session.certificate(None).is_err(), "nothing was looked at");
}

#[test]
fn a_certificate_can_be_worked_out_again_and_none_of_it_can_be_changed() {
    let Fixture { task, truth } = fixture(Method::Consensus);
    let (mut session, mut events) = (open(&task, &[]), Vec::new());
    for item in session.groups(40).into_iter().map(|group| group.items[0].item) {
        act(&mut session, &mut events, correct(item as u64, &truth[item]));
    }
    let settings = AuditSettings { max_error: 0.12, ..Default::default() };
    act(&mut session, &mut events, Event::Promise(settings));
    // Of one item no class fits, which counts as wrong.
    let item = look(&mut session, &mut events).next.unwrap();
    act(&mut session, &mut events, Event::Answer { row: item as u64, said: None });
    answer(&mut session, &mut events, &truth, 60);
    let certificate = session.certificate(None).unwrap();
    assert!(certificate.accepted_set >= 3, "{certificate:?}");
    assert!(certificate.statement.contains("with 95 % confidence"), "{}", certificate.statement);

    let dir = tempfile::tempdir().unwrap();
    for name in ["labels.csv", "labels.jsonl"] {
        let path = dir.path().join(name);
        session.write_labels(&path, false, false, None).unwrap();
        let rows = read_label_rows(&path).unwrap();
        assert_eq!(verify(&certificate, &rows).unwrap().len(), 3);
        let json = serde_json::to_string(&certificate).unwrap();
        assert_eq!(serde_json::from_str::<a2lp_review::Certificate>(&json).unwrap(), certificate);

        let changed = |change: &dyn Fn(&mut a2lp_review::Certificate)| {
            let mut other = certificate.clone();
            change(&mut other);
            verify(&other, &rows).unwrap_err()
        };
        changed(&|c| c.accepted_set = 10);
        changed(&|c| c.accepted_items += 1);
        changed(&|c| c.settings.max_error = 0.05);
        changed(&|c| c.version_delta = 0.05);
        changed(&|c| c.seed = Seed([8; 16]));
        changed(&|c| c.answers.truncate(3));
        changed(&|c| c.answers[0].said = Some("something else".into()));
        changed(&|c| c.statement = "All labels are right.".into());
        changed(&|c| c.answers.push(c.answers[0].clone()));
        let with = |change: &dyn Fn(&mut Vec<a2lp_data::LabelRow>)| {
            let mut other = rows.clone();
            change(&mut other);
            verify(&certificate, &other).unwrap_err()
        };
        let kept = rows.iter().position(|row| !row.is_from_person).unwrap();
        with(&|rows| rows[kept].label = Some("something else".into()));
        with(&|rows| rows[kept].confidence = 0.123456);
        with(&|rows| rows[kept].accepted = rows[kept].accepted.map(|accepted| !accepted));
        with(&|rows| drop(rows.remove(kept)));
        with(&|rows| rows[item].label = Some("no class fitted".into()));
    }
    // The corrections find their way back.
    let csv = dir.path().join("corrections.csv");
    std::fs::write(&csv, session.corrections_csv()).unwrap();
    let json = dir.path().join("corrections.json");
    std::fs::write(&json, session.corrections_json().to_string()).unwrap();
    let known = |path| {
        let items = a2lp_data::read_known(path).unwrap();
        let (domains, new) = a2lp_data::with_known_items(task.domains.clone(), items, None, None).unwrap();
        assert!(new.is_empty());
        domains.known().clone()
    };
    let said: KnownLabels = session
        .said()
        .into_iter()
        .map(|(item, name, _)| (item, task.domains.source_labels().classes().find(name).unwrap()))
        .collect();
    assert_eq!(known(&csv), said);
    assert_eq!(known(&json), said);
    let told = task.domains.clone().with_known(said.clone()).unwrap();
    let run = Run::new(told, &task.parameters).label().unwrap();
    assert!(said.iter().all(|(item, class)| run.pseudo_labels.labels()[item] == Some(class)));
}
