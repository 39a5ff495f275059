//! `rocr launch --spec`: several dispatches on one device, with shared buffers and dependencies.
//!
//! Knows: the order of steps. Must not know: the file's syntax, which `spec_file` reads.
use super::arguments::Buffers;
use super::checks::{self, Finding, RED_ZONE_BYTES};
use super::fault::FaultView;
use super::report::{ExpectationView, LaunchReport, PrintView};
use super::results::{Expectation, Output, Print};
use super::session::Session;
use super::spec_file::{DispatchWords, SpecFile};
use super::{LaunchSpec, failed};
use crate::cli::device::{self, DeviceView};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::{Outcome, Report, Table};
use crate::cli::values::{
    ArgSpec, Bindings, ExpectSpec, OutSpec, Parameter, ParameterKind, PrintSpec, Tolerance,
};
use crate::cli::{Context, input, interrupt, target};
use crate::runtime::{Agent, DispatchError, Guard, Launch, Runtime, Signal};
use clap::Parser;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// The options of one dispatch, read as the command line's are.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Words {
    #[command(flatten)]
    spec: LaunchSpec,
}

/// Runs the file.
pub(super) fn run(path: &Path, context: &Context) -> Result<Outcome, Failure> {
    let spec = SpecFile::read(path)?;
    let checked = checks::parse(&spec.check)?;
    let context = &adjusted(&spec, context)?;
    let runtime = Arc::new(open(&spec, context)?);
    let agent = runtime
        .agents()
        .first()
        .cloned()
        .ok_or_else(|| Failure::new(Exit::Environment, "no_device", "there is no GPU"))?;
    let shared = Shared::new(&spec, &agent, checked)?;
    let mut sessions = Vec::new();
    for words in &spec.dispatches {
        let located = |failure: Failure| Failure {
            message: format!(
                "{}: {} (line {}): {}",
                path.display(),
                words.name,
                words.line,
                failure.message
            ),
            ..failure
        };
        let mut session = session(words, &shared, &runtime, &agent, context).map_err(located)?;
        if checked {
            session.renew_lanes(|_| Some(GUARD))?;
        }
        sessions.push(session);
    }
    let mut report = SpecReport {
        device: Some(DeviceView::new(&runtime, &agent)),
        file: path.display().to_string(),
        ..SpecReport::default()
    };
    interrupt::watch();
    let mut shared = shared;
    for round in 0..spec.repeat.max(1) {
        report.dispatches = spec
            .dispatches
            .iter()
            .zip(&sessions)
            .map(|(words, session)| (words.name.clone(), session.report()))
            .collect();
        let ended = launch(&spec, &mut sessions, &shared, round, &mut report);
        report.rounds += 1;
        if let Err(failure) = ended {
            return Ok(Outcome::failed(report, failure));
        }
        if !report.findings.is_empty() {
            return Ok(Outcome::done(report, Exit::Wrong));
        }
        let tolerance = Tolerance {
            rtol: spec.rtol,
            atol: spec.atol,
        };
        for expectation in &mut shared.expectations {
            expectation.check(&shared.buffers, round, tolerance)?;
        }
    }
    report.expectations = shared.expectations.iter().map(Expectation::view).collect();
    for print in &shared.prints {
        report.prints.push(print.read(&shared.buffers)?);
    }
    for out in &shared.outs {
        match out.write(&shared.buffers) {
            Ok(name) => report.written.push(name),
            Err(failure) => return Ok(Outcome::failed(report, failure)),
        }
    }
    let verdict = if report.is_right() {
        Exit::Good
    } else {
        Exit::Wrong
    };
    Ok(Outcome::done(report, verdict))
}

/// Buffers end where their red zones begin.
const GUARD: Guard = Guard {
    red_zone_bytes: RED_ZONE_BYTES,
    at_end: true,
    open_before: false,
    open_behind: false,
};

/// The file's device and timeout, where the command line has none.
fn adjusted(spec: &SpecFile, context: &Context) -> Result<Context, Failure> {
    let mut context = context.clone();
    if let (Some(device), true) = (&spec.device, device::follows_file(&context.device)) {
        context.device = device::parse(device)?;
    }
    context.timeout = context.timeout.or(spec.timeout);
    Ok(context)
}

/// Opens the device, or an embedded GPU of the first file's target.
fn open(spec: &SpecFile, context: &Context) -> Result<Runtime, Failure> {
    let first = spec
        .dispatches
        .first()
        .and_then(|words| words.file.as_ref());
    let Some(first) = first else {
        return Err(Failure::usage("the first dispatch has no `file`"));
    };
    let input = input::read(first, context)?;
    let candidates: Vec<_> = input.entries.iter().collect();
    target::open_for(&input, &candidates, context, spec.deterministic)
}

/// The buffers that dispatches share, and what is done with them.
struct Shared {
    bindings: Bindings,
    buffers: Buffers,
    expectations: Vec<Expectation>,
    prints: Vec<Print>,
    outs: Vec<Output>,
}

impl Shared {
    fn new(spec: &SpecFile, agent: &Agent, checked: bool) -> Result<Shared, Failure> {
        // As if they were arguments of a kernel that takes nothing but pointers.
        let parameters: Vec<Parameter> = (0..)
            .zip(&spec.buffers)
            .map(|(index, (name, _))| Parameter {
                name: Some(name.clone()),
                kind: ParameterKind::Pointer,
                size_bytes: 8,
                offset_bytes: 8 * index,
                ty: None,
                pointee: None,
                aggregate: false,
            })
            .collect();
        let pair = |(name, value): &(String, String)| format!("{name}={value}");
        let values: Vec<ArgSpec> = spec
            .buffers
            .iter()
            .map(|buffer| ArgSpec::parse(&pair(buffer)))
            .collect::<Result<_, _>>()?;
        let bindings = if values.is_empty() {
            Bindings::default()
        } else {
            Bindings::bind(&parameters, &values)?
        };
        let buffers = Buffers::allocate(agent, &bindings, |_| checked.then_some(GUARD))?;
        let expectations = spec
            .expect
            .iter()
            .map(|expect| Expectation::new(&ExpectSpec::parse(&pair(expect))?, &bindings))
            .collect::<Result<_, Failure>>()?;
        let prints = spec
            .print
            .iter()
            .map(|word| Print::new(&PrintSpec::parse(word)?, &bindings))
            .collect::<Result<_, Failure>>()?;
        let outs = spec
            .out
            .iter()
            .map(|out| Output::new(&OutSpec::parse(&pair(out))?, &bindings))
            .collect::<Result<_, Failure>>()?;
        Ok(Shared {
            bindings,
            buffers,
            expectations,
            prints,
            outs,
        })
    }

    /// An argument with `&BUFFER` put as the shared buffer's address.
    fn resolve(&self, word: &str) -> String {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if !name.contains(['&', '{', ':']) => (Some(name), value),
            _ => (None, word),
        };
        let Some(reference) = value.strip_prefix('&') else {
            return word.to_owned();
        };
        let (buffer, offset) = match reference.split_once('+') {
            Some((buffer, offset)) => (buffer, crate::cli::units::parse_size(offset).ok()),
            None => (reference, Some(0)),
        };
        let index = self
            .bindings
            .list
            .iter()
            .position(|binding| binding.name.as_deref() == Some(buffer));
        let address = index
            .and_then(|index| self.buffers.get(index))
            .map(|buffer| buffer.address().get());
        match (address, offset) {
            (Some(address), Some(offset)) => {
                let name = name.map(|name| format!("{name}=")).unwrap_or_default();
                format!("{name}u64:{:#x}", address.wrapping_add(offset))
            }
            // Not a shared buffer: another argument's, which the binding knows.
            _ => word.to_owned(),
        }
    }
}

/// Makes the session of a dispatch.
fn session(
    words: &DispatchWords,
    shared: &Shared,
    runtime: &Arc<Runtime>,
    agent: &Agent,
    context: &Context,
) -> Result<Session, Failure> {
    let Some(file) = &words.file else {
        return Err(Failure::usage("it has no `file`, and the spec has none"));
    };
    let mut line = vec![file.clone()];
    line.extend(words.kernel.clone());
    line.extend(words.words.iter().cloned());
    for argument in &words.arguments {
        line.push(format!("--arg={}", shared.resolve(argument)));
    }
    let spec = Words::try_parse_from(line)
        .map_err(|error| {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            Failure::usage(first.strip_prefix("error: ").unwrap_or(first))
        })?
        .spec;
    let input = input::read(file, context)?;
    Session::on(Arc::clone(runtime), agent, &input, &spec, context)
}

/// Starts all dispatches, each on its queue behind those it depends on, and waits for them.
fn launch(
    spec: &SpecFile,
    sessions: &mut [Session],
    shared: &Shared,
    round: u64,
    report: &mut SpecReport,
) -> Result<(), Failure> {
    shared.buffers.initialise(&shared.bindings)?;
    for session in sessions.iter() {
        session.initialise()?;
    }
    let mut flights: Vec<Launch> = Vec::new();
    let mut ended: Option<(usize, DispatchError)> = None;
    for (index, (words, session)) in spec.dispatches.iter().zip(sessions.iter()).enumerate() {
        let prepared = session.prepare()?;
        let after: Vec<&Signal> = words
            .after
            .iter()
            .filter_map(|index| flights.get(*index).and_then(Launch::signal))
            .collect();
        match session.start_after(&after, &prepared) {
            Ok(launch) => flights.push(launch),
            Err(error) => {
                ended = Some((index, error));
                break;
            }
        }
    }
    for (index, flight) in flights.iter().enumerate() {
        // What depends on a dispatch that failed never begins.
        let doomed = ended.as_ref().is_some_and(|(failed, _)| *failed < index);
        if doomed && !flight.is_complete() {
            continue;
        }
        let done = sessions[index].wait(flight);
        let output = sessions[index].take_output(0);
        report.device_output.extend(output.text);
        let Some((_, view)) = report.dispatches.get_mut(index) else {
            continue;
        };
        match done {
            Ok(done) => {
                view.launches += 1;
                view.device_times_ns.extend(done.device_time_ns);
                view.host_times_ns.push(done.host_time_ns);
                view.start_ns = Some(done.start_ns);
                view.end_ns = Some(done.end_ns);
                sessions[index].check(round)?;
                view.expectations = sessions[index]
                    .expectations
                    .iter()
                    .map(Expectation::view)
                    .collect();
            }
            Err(error) => {
                if ended.is_none() {
                    ended = Some((index, error));
                }
            }
        }
    }
    let Some((index, error)) = ended else {
        return Ok(());
    };
    if let (DispatchError::Fault(fault), false) = (&error, spec.check.is_empty()) {
        let nulls = sessions[index].nulls();
        let view = FaultView::new(fault);
        if let Some(finding) = Finding::new(&view, &nulls) {
            let in_red_zone = finding.kind == "out_of_bounds";
            report.findings.push(finding);
            if in_red_zone {
                return Ok(());
            }
        }
    }
    let name = spec
        .dispatches
        .get(index)
        .map(|words| words.name.clone())
        .unwrap_or_default();
    let failure = match report.dispatches.get_mut(index) {
        Some((_, view)) => failed(error, view),
        None => Failure::from(error),
    };
    Err(Failure {
        message: format!("{name}: {}", failure.message),
        ..failure
    })
}

/// The result.
#[derive(Debug, Default)]
struct SpecReport {
    device: Option<DeviceView>,
    file: String,
    rounds: u64,
    dispatches: Vec<(String, LaunchReport)>,
    expectations: Vec<ExpectationView>,
    findings: Vec<Finding>,
    prints: Vec<PrintView>,
    written: Vec<String>,
    device_output: Vec<u8>,
}

impl SpecReport {
    fn is_right(&self) -> bool {
        self.findings.is_empty()
            && self.expectations.iter().all(ExpectationView::ok)
            && self.dispatches.iter().all(|(_, report)| report.is_right())
    }
}

impl Report for SpecReport {
    fn json(&self) -> Map<String, Value> {
        let dispatch = |(name, report): &(String, LaunchReport)| {
            let mut object = report.json();
            // Its own are among the whole run's.
            object.remove("device_output");
            object.insert("name".to_owned(), json!(name));
            Value::Object(object)
        };
        let print = |print: &PrintView| {
            let values: Vec<Value> = print.values.iter().map(|value| value.to_json()).collect();
            (print.name.clone(), Value::Array(values))
        };
        Map::from_iter([
            ("device".to_owned(), json!(self.device)),
            ("spec".to_owned(), json!(self.file)),
            ("rounds".to_owned(), json!(self.rounds)),
            (
                "dispatches".to_owned(),
                self.dispatches.iter().map(dispatch).collect(),
            ),
            (
                "expectations".to_owned(),
                self.expectations
                    .iter()
                    .map(ExpectationView::json)
                    .collect(),
            ),
            ("findings".to_owned(), json!(self.findings)),
            (
                "prints".to_owned(),
                Value::Object(self.prints.iter().map(print).collect()),
            ),
            ("outputs".to_owned(), json!(self.written)),
            (
                "device_output".to_owned(),
                json!(String::from_utf8_lossy(&self.device_output)),
            ),
        ])
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.device_output)?;
        if let Some(device) = &self.device {
            writeln!(out, "device   {device}")?;
        }
        for (name, report) in &self.dispatches {
            writeln!(out, "\n{name}")?;
            report.human(out)?;
        }
        writeln!(out)?;
        for print in &self.prints {
            let values: Vec<String> = print.values.iter().map(ToString::to_string).collect();
            writeln!(
                out,
                "{} = {}[{}] {}",
                print.name,
                print.ty,
                print.count,
                values.join(" ")
            )?;
        }
        for name in &self.written {
            writeln!(out, "wrote    {name}")?;
        }
        for finding in &self.findings {
            finding.human(out)?;
        }
        for expectation in &self.expectations {
            let verdict = if expectation.ok() { "right" } else { "WRONG" };
            writeln!(out, "{verdict:<8} {}", expectation.text())?;
        }
        Ok(())
    }

    fn csv(&self) -> Table {
        let mut table = Table::new(["dispatch", "kernel", "launches", "right", "device_time_ns"]);
        for (name, report) in &self.dispatches {
            table.row([
                name.clone(),
                report.kernel.clone(),
                report.launches.to_string(),
                report.is_right().to_string(),
                report
                    .device_times_ns
                    .first()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ]);
        }
        table
    }
}
