//! The launches of one `rocr launch`: how many, on how many queues, with what checked between.
//!
//! Knows: the order of steps around a launch, what a faulting launch means with `--check memory`. Must not know: options'
//! syntax, output formats.
use super::checks::{Finding, RED_ZONE_BYTES};
use super::fault::FaultView;
use super::report::LaunchReport;
use super::session::Session;
use super::trace::Trace;
use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::runtime::{DispatchError, Guard, Launch, PreparedArguments};
use indicatif::ProgressBar;
use std::time::Instant;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Launches in all.
    pub(super) repeat: u64,
    /// Buffers and globals are initialised before the first launch only.
    pub(super) keep: bool,
    pub(super) show_kernarg: bool,
}

/// What kept launches from going on.
#[derive(Debug)]
pub(super) enum End {
    /// Something around the launch.
    Failure(Failure),
    /// The launch.
    Dispatch(DispatchError),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> End {
        End::Failure(failure)
    }
}

/// Makes all launches; what they did is added to the report.
pub(super) fn launch_all(
    session: &mut Session,
    plan: Plan,
    report: &mut LaunchReport,
    trace: &mut Trace,
    context: &Context,
) -> Result<(), End> {
    let prepared: Vec<PreparedArguments> = (0..session.lanes())
        .map(|lane| session.prepare_on(lane))
        .collect::<Result<_, _>>()?;
    if let Some(first) = prepared.first() {
        session.describe(report, first, plan.show_kernarg);
    }
    let bar = progress(plan.repeat, context);
    let ended = rounds(session, plan, &prepared, report, trace, &bar);
    bar.finish_and_clear();
    report.device_output_problems.iter().for_each(|problem| {
        context.talk.warn(problem);
    });
    ended
}

fn rounds(
    session: &mut Session,
    plan: Plan,
    prepared: &[PreparedArguments],
    report: &mut LaunchReport,
    trace: &mut Trace,
    bar: &ProgressBar,
) -> Result<(), End> {
    let mut launched = 0;
    while launched < plan.repeat {
        let lanes = (prepared.len() as u64).min(plan.repeat - launched) as usize;
        if launched == 0 || !plan.keep {
            session.initialise_globals()?;
            for lane in 0..lanes {
                let begun = Instant::now();
                session.initialise_buffers(lane)?;
                trace.copied(session.queue_id(lane), begun);
            }
        }
        let mut flights: Vec<Launch> = Vec::new();
        let mut ended = Ok(());
        for (lane, prepared) in prepared.iter().enumerate().take(lanes) {
            match session.start(lane, prepared) {
                Ok(launch) => flights.push(launch),
                Err(error) => {
                    ended = Err(End::Dispatch(error));
                    break;
                }
            }
        }
        for (lane, flight) in flights.iter().enumerate() {
            let done = session.wait(flight);
            let output = session.take_output(lane);
            report.device_output.extend(output.text);
            report.device_output_problems.extend(output.problems);
            if output.last_error.is_some() {
                report.device_error = output.last_error;
            }
            match done {
                Ok(done) => {
                    report.launches += 1;
                    report.device_times_ns.extend(done.device_time_ns);
                    report.host_times_ns.push(done.host_time_ns);
                    if let Some(counters) = done.counters.clone() {
                        *report.counters.get_or_insert_default() += counters;
                    }
                    trace.launched(session.queue_id(lane), launched + lane as u64, &done);
                    session.check_on(lane, launched + lane as u64)?;
                    bar.inc(1);
                }
                Err(error) => {
                    if let Some(counters) = session.take_counters(lane) {
                        *report.counters.get_or_insert_default() += counters;
                    }
                    // The first that happened stands.
                    if ended.is_ok() {
                        ended = Err(End::Dispatch(error));
                    }
                }
            }
        }
        ended?;
        launched += lanes as u64;
    }
    Ok(())
}

/// Makes all launches with red zones around the buffers. An access to a red zone is a finding; the zone is then opened
/// and the launches start afresh, so that the next finding is found. Buffers lie at the beginning of their pages first
/// and at the end then, because a page's end is where an access is noticed.
pub(super) fn launch_checked(
    session: &mut Session,
    plan: Plan,
    most: usize,
    report: &mut LaunchReport,
    trace: &mut Trace,
    context: &Context,
) -> Result<(), End> {
    let mut open = vec![(false, false); session.bindings.list.len()];
    for at_end in [false, true] {
        let pass = Plan {
            repeat: if at_end { plan.repeat } else { 1 },
            ..plan
        };
        loop {
            let zones = open.clone();
            session.renew_lanes(|index| {
                let (open_before, open_behind) = zones.get(index).copied().unwrap_or_default();
                Some(Guard {
                    red_zone_bytes: RED_ZONE_BYTES,
                    at_end,
                    open_before,
                    open_behind,
                })
            })?;
            report.restart();
            session.forget_results();
            trace.restart();
            let error = match launch_all(session, pass, report, trace, context) {
                Ok(()) => break,
                Err(End::Dispatch(error)) => error,
                Err(failure) => return Err(failure),
            };
            let DispatchError::Fault(fault) = &error else {
                return Err(End::Dispatch(error));
            };
            let view = FaultView::new(fault);
            let Some(finding) = Finding::new(&view, &session.nulls()) else {
                return Err(End::Dispatch(error));
            };
            let zone = finding.red_zone();
            report.findings.push(finding);
            let Some((argument, behind)) = zone else {
                // Memory that is nobody's: there is nothing to go on with.
                return Err(End::Dispatch(error));
            };
            let Some((open_before, open_behind)) = open.get_mut(argument) else {
                return Err(End::Dispatch(error));
            };
            let opened = if behind { open_behind } else { open_before };
            if std::mem::replace(opened, true) {
                return Err(End::Dispatch(error));
            }
            if report.findings.len() >= most {
                context.talk.warn(&format!(
                    "{most} findings (--max-findings): the launch was not finished"
                ));
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A bar on a terminal, for more than one launch.
fn progress(count: u64, context: &Context) -> ProgressBar {
    // indicatif draws to stderr, and only where that is a terminal.
    if count > 1 && !context.talk.quiet {
        ProgressBar::new(count)
    } else {
        ProgressBar::hidden()
    }
}
