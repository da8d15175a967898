//! Progress bars: on a terminal only, and only for what takes longer than a second.

use a2lp::evaluation::Evaluator;
use a2lp::{FinishedRound, Observer, Stage};
use a2lp_report::Watcher;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Looks on at a run for the user: draws bars, passes Ctrl-C on, scores rounds where the truth is known, and has the
/// watcher note down what a report will show.
pub(crate) struct Onlooker<'a> {
    evaluator: Option<&'a Evaluator>,
    watcher: Option<&'a Watcher<'a>>,
    bar: Mutex<Bar>,
}

struct Bar {
    drawn: Option<(Stage, ProgressBar)>,
    stage_began: Option<(Stage, Instant)>,
}

impl<'a> Onlooker<'a> {
    pub(crate) fn new(evaluator: Option<&'a Evaluator>, watcher: Option<&'a Watcher<'a>>) -> Self {
        Onlooker { evaluator, watcher, bar: Mutex::new(Bar { drawn: None, stage_began: None }) }
    }
}

impl Observer for Onlooker<'_> {
    fn progress(&self, stage: Stage, done: u64, total: u64) -> ControlFlow<()> {
        if crate::interrupt::requested() {
            if let Ok(mut bar) = self.bar.lock() {
                bar.clear();
            }
            return ControlFlow::Break(());
        }
        // A worker that finds the bar busy has better things to do.
        if std::io::stderr().is_terminal()
            && let Ok(mut bar) = self.bar.try_lock()
        {
            bar.update(stage, done, total);
        }
        ControlFlow::Continue(())
    }

    fn round(&self, round: &FinishedRound<'_>) {
        if let Some(evaluator) = self.evaluator {
            evaluator.round(round);
        }
        if let Some(watcher) = self.watcher {
            watcher.round(round);
        }
    }
}

impl Bar {
    fn clear(&mut self) {
        if let Some((_, bar)) = self.drawn.take() {
            bar.finish_and_clear();
        }
    }

    fn update(&mut self, stage: Stage, done: u64, total: u64) {
        let began = match self.stage_began {
            Some((current, began)) if current == stage => began,
            _ => {
                self.clear();
                self.stage_began.insert((stage, Instant::now())).1
            }
        };
        if self.drawn.is_none() && began.elapsed() > Duration::from_secs(1) {
            self.drawn = Some((stage, draw(stage, total).with_elapsed(began.elapsed())));
        }
        if let Some((_, bar)) = &self.drawn {
            bar.set_position(done);
            if done >= total {
                bar.finish_and_clear();
            }
        }
    }
}

/// A bar for work that counts its steps: on a terminal, once a second has passed.
pub(crate) fn counting_bar(template: &'static str) -> impl Fn(u64, u64) + Sync {
    let began = Instant::now();
    let bar: Mutex<Option<ProgressBar>> = Mutex::new(None);
    move |done, total| {
        if !std::io::stderr().is_terminal() || began.elapsed() < Duration::from_secs(1) {
            return;
        }
        let Ok(mut bar) = bar.try_lock() else { return };
        let bar = bar.get_or_insert_with(|| {
            ProgressBar::new(total).with_style(style(template)).with_elapsed(began.elapsed())
        });
        bar.set_position(done);
        if done >= total {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ")
}

fn draw(stage: Stage, total: u64) -> ProgressBar {
    let template = match stage {
        Stage::Neighbours => "finding neighbours [{bar:32}] {percent:>3} %  {eta} left",
        Stage::Rounds => "propagating        [{bar:32}] round {pos} of {len}  {eta} left",
    };
    ProgressBar::new(total).with_style(style(template))
}
