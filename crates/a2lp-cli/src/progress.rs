//! Progress bars: on a terminal only, and only for what takes longer than a second.

use crate::interrupt::CtrlC;
use a2lp::{Observer, Stage};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Draws a bar for every stage of a run, and passes Ctrl-C on.
#[derive(Default)]
pub(crate) struct ProgressBars(Mutex<Bar>);

#[derive(Default)]
struct Bar {
    drawn: Option<(Stage, ProgressBar)>,
    stage_began: Option<(Stage, Instant)>,
}

impl Observer for ProgressBars {
    fn progress(&self, stage: Stage, done: u64, total: u64) -> ControlFlow<()> {
        if CtrlC.progress(stage, done, total).is_break() {
            if let Ok(mut bar) = self.0.lock() {
                bar.clear();
            }
            return ControlFlow::Break(());
        }
        // A worker that finds the bar busy has better things to do.
        if std::io::stderr().is_terminal()
            && let Ok(mut bar) = self.0.try_lock()
        {
            bar.update(stage, done, total);
        }
        ControlFlow::Continue(())
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
        _ => "propagating        [{bar:32}] round {pos} of {len}  {eta} left",
    };
    ProgressBar::new(total).with_style(style(template))
}
