//! Everything that must exist to launch: the file opened, the code loaded, the arguments bound and allocated.
//!
//! Knows: the order in which these come about, and what each refuses. Must not know: reports, other options.
use super::arguments::{self, Buffers};
use super::fault::{Nulls, QueueView};
use super::fidelity::Fidelity;
use super::globals::{Pristine, Setting};
use super::report::{ArgView, KernargView, LaunchReport};
use super::results::Expectation;
use super::{DEFAULT_TIMEOUT, Hostcall, LaunchSpec, geometry, refused};
use crate::cli::define::{Defined, Definitions};
use crate::cli::device::DeviceView;
use crate::cli::failure::{Exit, Failure};
use crate::cli::input::{self, Input};
use crate::cli::kernarg_map::{self, FieldKind};
use crate::cli::load::kernel_names;
use crate::cli::values::{
    self, ArgSpec, Bindings, ExpectSpec, Parameter, Tolerance, Value, ValueSource,
};
use crate::cli::{Context, interrupt, kernels, parameters, target};
use crate::loader::{Entry, ValueKind};
use crate::runtime::instrument::ExecutionCounters;
use crate::runtime::{
    Agent, Arguments, DeviceOutput, DispatchError, Guard, Kernel, Launch, LaunchOptions,
    LoadOptions, LoadedExecutable, PreparedArguments, Queue, QueueOptions, Runtime, Signal,
    WaitOptions, WaitPolicy,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Everything that must exist to launch: opened, loaded, bound, allocated.
pub(in crate::cli) struct Session {
    runtime: Arc<Runtime>,
    agent: Agent,
    /// At least one.
    lanes: Vec<Lane>,
    queue_options: QueueOptions,
    kernel: Kernel,
    pub(super) executable: LoadedExecutable,
    parameters: Vec<Parameter>,
    pub(super) bindings: Bindings,
    settings: Vec<Setting>,
    defined: Defined,
    pristine: Pristine,
    pub(super) expectations: Vec<Expectation>,
    raw: Option<RawKernarg>,
    options: LaunchOptions,
    tolerance: Tolerance,
    timeout: Option<Duration>,
    policy: WaitPolicy,
    file: String,
    entry: usize,
}

/// Signals that one barrier packet waits for.
const DEPENDENCIES: usize = 5;

/// A queue with the buffers of its launches.
#[derive(Debug)]
struct Lane {
    queue: Queue,
    buffers: Buffers,
}

/// What `--kernarg-file` gives.
#[derive(Debug)]
enum RawKernarg {
    /// Every byte of the segment.
    Whole(Vec<u8>),
    /// The explicit arguments; the hidden ones are filled as usual.
    Explicit(Vec<u8>),
}

impl Session {
    /// Opens the file and the device, loads, selects the kernel, binds and allocates the arguments.
    pub(in crate::cli) fn open(spec: &LaunchSpec, context: &Context) -> Result<Session, Failure> {
        if spec.spec_file.is_some() {
            return Err(Failure::usage("--spec belongs to `rocr launch`"));
        }
        // What is malformed is known before a file is read or a device opened.
        Options::parse(spec)?;
        let input = input::read(spec.file.as_deref().unwrap_or_default(), context)?;
        let candidates = target::filter(
            &input.name,
            &input.entries,
            spec.entry,
            spec.target.as_deref(),
        )?;
        let runtime = target::open_for(&input, &candidates, context, spec.deterministic)?;
        let agent = runtime
            .agents()
            .first()
            .cloned()
            .ok_or_else(|| Failure::new(Exit::Environment, "no_device", "there is no GPU"))?;
        Session::on(Arc::new(runtime), &agent, &input, spec, context)
    }

    /// Does the same on a device that is open.
    pub(super) fn on(
        runtime: Arc<Runtime>,
        agent: &Agent,
        input: &Input,
        spec: &LaunchSpec,
        context: &Context,
    ) -> Result<Session, Failure> {
        let Options {
            args,
            expects,
            tolerance,
            definitions,
        } = Options::parse(spec)?;
        let entry = select(input, spec, agent)?;
        let agent = agent.clone();
        target::executes(&input.name, &agent)?;
        let object = input.object(entry)?;
        for warning in &object.warnings {
            context.talk.detail(&format!("{}: {warning}", input.name));
        }
        let names = kernel_names(object);
        let selected =
            kernels::select(&names, spec.kernel.as_deref()).map_err(|failure| Failure {
                message: format!("{}: {}", input.name, failure.message),
                ..failure
            })?;
        let defined = definitions.place(&agent, object)?;
        let options = LoadOptions {
            define: &defined.list(),
        };
        let executable = agent
            .load(object, &options)
            .map_err(|error| Failure::executable(&input.name, &error))?;
        let kernel = executable.kernel(&names[selected].symbol).ok_or_else(|| {
            Failure::new(
                Exit::File,
                "no_such_kernel",
                format!("{}: no kernel {}", input.name, names[selected].name),
            )
        })?;
        let requirements = kernel.requirements();
        let geometry = geometry::resolve(spec.grid, spec.blocks, spec.block, &requirements)?;
        let symbol = kernel.symbol();
        let parameters = parameters::explicit(symbol.kernel(), &object.parameters(symbol.kernel()));
        let raw = raw_kernarg(spec, symbol.kernel())?;
        let bindings = bind(
            spec,
            context,
            &kernel,
            &parameters,
            &args,
            raw.is_some(),
            &agent,
            geometry,
        )?;
        let expectations = expects
            .iter()
            .map(|spec| Expectation::new(spec, &bindings))
            .collect::<Result<_, _>>()?;
        let settings = spec
            .set_global
            .iter()
            .map(|word| Setting::new(word, &executable))
            .collect::<Result<_, _>>()?;
        let mut options = LaunchOptions::new(geometry);
        options.allow_partial = spec.allow_partial;
        options.hostcall = spec.hostcall == Hostcall::On;
        options.dynamic_lds_bytes = arguments::dynamic_lds(&bindings, spec.dyn_lds)?;
        if let Some(bytes) = spec.stack {
            options.stack_bytes = u32::try_from(bytes).map_err(|_too_large| {
                Failure::usage(format!("--stack {bytes}: at most {} bytes", u32::MAX))
            })?;
        }
        // What is refused is refused before memory is taken for it.
        geometry_check(&kernel, &options, &agent)?;
        let mut queue_options = QueueOptions::default();
        if let Some(packets) = spec.queue_size {
            queue_options.packets = packets;
        }
        let lane = Lane {
            buffers: Buffers::allocate(&agent, &bindings, |_| None)?,
            queue: agent.create_queue(&queue_options)?,
        };
        let pristine = Pristine::new(&executable)?;
        let timeout = context.timeout.unwrap_or(DEFAULT_TIMEOUT);
        Ok(Session {
            agent,
            lanes: vec![lane],
            queue_options,
            kernel,
            executable,
            parameters,
            bindings,
            settings,
            defined,
            pristine,
            expectations,
            raw,
            options,
            tolerance,
            policy: if context.environment.polls() {
                WaitPolicy::Active
            } else {
                WaitPolicy::Blocked
            },
            timeout: (!timeout.is_zero()).then_some(timeout),
            file: input.name.clone(),
            entry: entry.index,
            runtime,
        })
    }

    /// Makes queues, each with buffers of its own, until there are `count`.
    pub(super) fn add_lanes(&mut self, count: usize) -> Result<(), Failure> {
        while self.lanes.len() < count {
            self.lanes.push(Lane {
                buffers: Buffers::allocate(&self.agent, &self.bindings, |_| None)?,
                queue: self.agent.create_queue(&self.queue_options)?,
            });
        }
        Ok(())
    }

    /// Makes every lane anew, its buffers set apart by `guard`: after a fault, which ends a queue.
    pub(super) fn renew_lanes(
        &mut self,
        guard: impl Fn(usize) -> Option<Guard>,
    ) -> Result<(), Failure> {
        let count = self.lanes.len();
        // The old ones first: there may be no room for both.
        self.lanes.clear();
        while self.lanes.len() < count {
            self.lanes.push(Lane {
                buffers: Buffers::allocate(&self.agent, &self.bindings, &guard)?,
                queue: self.agent.create_queue(&self.queue_options)?,
            });
        }
        Ok(())
    }

    /// Queues.
    pub(super) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The buffers of a lane.
    pub(super) fn buffers(&self, lane: usize) -> &Buffers {
        &self.lanes[lane].buffers
    }

    /// The number of a lane's queue.
    pub(super) fn queue_id(&self, lane: usize) -> u32 {
        self.lanes[lane].queue.id().0
    }

    /// Fills the first lane's buffers and the globals with what they hold before a launch.
    pub(in crate::cli) fn initialise(&self) -> Result<(), Failure> {
        self.initialise_buffers(0)?;
        self.initialise_globals()
    }

    /// Fills a lane's buffers.
    pub(super) fn initialise_buffers(&self, lane: usize) -> Result<(), Failure> {
        self.buffers(lane).initialise(&self.bindings)
    }

    /// Fills the globals.
    pub(super) fn initialise_globals(&self) -> Result<(), Failure> {
        self.defined.initialise()?;
        self.pristine.restore(&self.executable)?;
        self.settings
            .iter()
            .try_for_each(|setting| setting.apply(&self.executable))
    }

    /// Checks the launch and makes its kernarg segment, for the first lane.
    pub(in crate::cli) fn prepare(&self) -> Result<PreparedArguments, Failure> {
        self.prepare_on(0)
    }

    /// Checks the launch and makes its kernarg segment.
    pub(super) fn prepare_on(&self, lane: usize) -> Result<PreparedArguments, Failure> {
        let Lane { queue, buffers } = &self.lanes[lane];
        let values = arguments::values(&self.bindings, &self.parameters, buffers);
        let list = arguments::list(&self.bindings, &values, buffers)?;
        let arguments = match &self.raw {
            Some(RawKernarg::Whole(bytes)) => Arguments::Segment(bytes),
            Some(RawKernarg::Explicit(bytes)) => Arguments::Explicit(bytes),
            None => Arguments::List(&list),
        };
        self.kernel
            .prepare(queue, arguments, &self.options)
            .map_err(refused)
    }

    /// Launches on the first lane and waits.
    pub(in crate::cli) fn launch(
        &self,
        prepared: &PreparedArguments,
    ) -> Result<crate::runtime::LaunchReport, DispatchError> {
        self.wait(&self.start(0, prepared)?)
    }

    /// Launches.
    pub(super) fn start(
        &self,
        lane: usize,
        prepared: &PreparedArguments,
    ) -> Result<Launch, DispatchError> {
        self.lanes[lane]
            .queue
            .launch_prepared(&self.kernel, prepared, &self.options)
    }

    /// Launches on the first lane once all of `after` are 0.
    pub(super) fn start_after(
        &self,
        after: &[&Signal],
        prepared: &PreparedArguments,
    ) -> Result<Launch, DispatchError> {
        // A queue that has stopped says why when the launch is put in.
        for signals in after.chunks(DEPENDENCIES) {
            self.lanes[0].queue.barrier_and(signals, None).ok();
        }
        self.start(0, prepared)
    }

    /// Waits for a launch.
    pub(super) fn wait(
        &self,
        launch: &Launch,
    ) -> Result<crate::runtime::LaunchReport, DispatchError> {
        launch
            .wait(&WaitOptions {
                timeout: self.timeout,
                interrupted: Some(&interrupt::requested),
                policy: self.policy,
            })
            .map_err(|error| self.labelled(error))
    }

    /// A fault's argument is called by the label that the command line gives it where nothing else has a name for it.
    fn labelled(&self, mut error: DispatchError) -> DispatchError {
        if let DispatchError::Fault(fault) = &mut error
            && let Some(argument) = &mut fault.argument
            && argument.name.is_none()
        {
            let binding = self.bindings.list.get(argument.index);
            argument.name = binding.and_then(|binding| binding.name.clone());
        }
        error
    }

    /// What kernels have printed on a lane since the last call.
    pub(super) fn take_output(&self, lane: usize) -> DeviceOutput {
        self.lanes[lane].queue.take_output()
    }

    /// Checks every expectation on the first lane.
    pub(in crate::cli) fn check(&mut self, launch: u64) -> Result<(), Failure> {
        self.check_on(0, launch)
    }

    /// Checks every expectation.
    pub(super) fn check_on(&mut self, lane: usize, launch: u64) -> Result<(), Failure> {
        let buffers = &self.lanes[lane].buffers;
        self.expectations
            .iter_mut()
            .try_for_each(|expectation| expectation.check(buffers, launch, self.tolerance))
    }

    /// From now on launches are counted in detail, on embedded devices.
    pub(super) fn count_details(&self) {
        if let Some(instrument) = self.runtime.instrument() {
            instrument.set_detailed_counters(true);
        }
    }

    /// What the environment has changed of the device.
    pub(super) fn banners(&self) -> &[String] {
        self.runtime.banners()
    }

    /// Forgets what expectations have seen: the launches start afresh.
    pub(super) fn forget_results(&mut self) {
        self.expectations.iter_mut().for_each(Expectation::forget);
    }

    /// How the kernel's instructions are executed, and how often these `counters` say that they were.
    pub(super) fn fidelity(&self, counters: Option<&ExecutionCounters>) -> Fidelity {
        let symbol = self.kernel.symbol();
        Fidelity::new(
            symbol.code_object(),
            symbol.kernel(),
            &self.executable,
            counters,
        )
    }

    /// What a lane's queue has executed and no report has told.
    pub(super) fn take_counters(&self, lane: usize) -> Option<ExecutionCounters> {
        self.lanes[lane].queue.take_counters()
    }

    /// The pointers that are null.
    pub(super) fn nulls(&self) -> Nulls {
        let list = self.bindings.list.iter().enumerate();
        let declares_hostcall = || {
            let mut hidden = self
                .kernel
                .metadata()
                .into_iter()
                .flat_map(|metadata| metadata.hidden_args());
            hidden.any(|slot| slot.kind == ValueKind::HiddenHostcallBuffer)
        };
        Nulls {
            arguments: list
                .filter(|(_, binding)| matches!(binding.value, Value::Null))
                .map(|(index, _)| (index, self.bindings.title(index)))
                .collect(),
            hostcall: !self.options.hostcall && declares_hostcall(),
        }
    }

    /// Where every lane's queue stands.
    pub(super) fn queue_views(&self) -> Vec<QueueView> {
        self.lanes
            .iter()
            .map(|lane| QueueView::new(&lane.queue))
            .collect()
    }

    /// The device, for reports.
    pub(in crate::cli) fn device(&self) -> DeviceView {
        DeviceView::new(&self.runtime, self.executable.agent())
    }

    /// What is launched, for reports.
    pub(in crate::cli) fn parameters_json(&self) -> serde_json::Value {
        let geometry = self.options.geometry;
        json!({
            "file": self.file,
            "kernel": self.kernel.name(),
            "grid": geometry.grid,
            "block": geometry.workgroup,
        })
    }

    /// The first expectation that does not hold, in words.
    pub(in crate::cli) fn mismatch(&self) -> Option<String> {
        self.expectations
            .iter()
            .map(Expectation::view)
            .find(|view| !view.ok())
            .map(|view| view.text())
    }

    /// The report before the first launch.
    pub(super) fn report(&self) -> LaunchReport {
        let geometry = self.options.geometry;
        LaunchReport {
            device: Some(self.device()),
            file: self.file.clone(),
            entry: self.entry,
            kernel: self.kernel.name().to_owned(),
            demangled: kernels::demangle(self.kernel.name()),
            dimensions: geometry.dimensions,
            grid: geometry.grid,
            block: geometry.workgroup,
            workgroups: geometry.workgroups(),
            args: self.arg_views(),
            globals: self.settings.iter().map(Setting::view).collect(),
            ..LaunchReport::default()
        }
    }

    /// Adds what is known once the segment is made.
    pub(super) fn describe(
        &self,
        report: &mut LaunchReport,
        prepared: &PreparedArguments,
        show_kernarg: bool,
    ) {
        report.dynamic_lds_bytes = prepared.dynamic_lds_bytes;
        report.stack_bytes = prepared.stack_bytes;
        // Buffers may have been made anew since.
        report.args = self.arg_views();
        if show_kernarg {
            report.kernarg = self.kernarg_views(&prepared.kernarg);
        }
    }

    fn arg_views(&self) -> Vec<ArgView> {
        let view = |(index, (binding, parameter)): (usize, (&values::Binding, &Parameter))| {
            let address = self
                .buffers(0)
                .get(index)
                .map(|buffer| buffer.address().get());
            let (ty, assumed, count, size, value) = match &binding.value {
                Value::Scalar { value, assumed } => (
                    Some(value.ty.to_string()),
                    *assumed,
                    None,
                    parameter.size_bytes,
                    value.to_json(),
                ),
                Value::Buffer(content) => {
                    let ty = content.ty().to_string();
                    (
                        Some(ty),
                        false,
                        Some(content.count()),
                        content.size_bytes(),
                        json!(content.init_text()),
                    )
                }
                Value::Null => (None, false, None, 0, json!("null")),
                Value::Address(address) => (None, false, None, 0, json!(format!("{address:#x}"))),
                Value::Reference {
                    target,
                    offset_bytes: 0,
                } => (
                    None,
                    false,
                    None,
                    0,
                    json!(format!("&{}", self.bindings.title(*target))),
                ),
                Value::Reference {
                    target,
                    offset_bytes,
                } => (
                    None,
                    false,
                    None,
                    0,
                    json!(format!("&{}+{offset_bytes}", self.bindings.title(*target))),
                ),
                Value::Lds(bytes) => (None, false, None, *bytes, json!(format!("lds[{bytes}]"))),
                Value::Bytes { bytes, .. } => (
                    None,
                    false,
                    None,
                    bytes.len() as u64,
                    json!(format!("hex:{}", hex(bytes))),
                ),
            };
            ArgView {
                index,
                name: binding.name.clone(),
                kind: parameter.kind.name(),
                r#type: ty,
                assumed,
                count,
                size_bytes: size,
                offset_bytes: parameter.offset_bytes,
                address,
                value,
                source: match binding.source {
                    ValueSource::Given => "arg",
                    ValueSource::Auto => "auto",
                },
            }
        };
        self.bindings
            .list
            .iter()
            .zip(&self.parameters)
            .enumerate()
            .map(view)
            .collect()
    }

    fn kernarg_views(&self, bytes: &[u8]) -> Vec<KernargView> {
        let symbol = self.kernel.symbol();
        let names: Vec<Option<String>> = self
            .bindings
            .list
            .iter()
            .map(|binding| binding.name.clone())
            .collect();
        let fields = kernarg_map::layout(symbol.code_object().version, symbol.kernel(), &names);
        let view = |field: kernarg_map::Field| {
            let end = (field.offset_bytes + field.size_bytes) as usize;
            let content = bytes
                .get(field.offset_bytes as usize..end)
                .unwrap_or_default();
            KernargView {
                offset_bytes: field.offset_bytes,
                size_bytes: field.size_bytes,
                kind: field.kind.name(),
                name: match field.kind {
                    FieldKind::Explicit(index) => format!("{} (argument {index})", field.name),
                    _ => field.name,
                },
                hex: hex(content),
            }
        };
        fields.into_iter().map(view).collect()
    }
}

/// Options that have a grammar of their own.
struct Options {
    args: Vec<ArgSpec>,
    expects: Vec<ExpectSpec>,
    tolerance: Tolerance,
    definitions: Definitions,
}

impl Options {
    fn parse(spec: &LaunchSpec) -> Result<Options, Failure> {
        let args = spec.arg.iter().map(|word| ArgSpec::parse(word));
        let expects = spec.expect.iter().map(|word| ExpectSpec::parse(word));
        Ok(Options {
            args: args.collect::<Result<_, _>>()?,
            expects: expects.collect::<Result<_, _>>()?,
            tolerance: Tolerance {
                rtol: tolerance("--rtol", spec.rtol)?,
                atol: tolerance("--atol", spec.atol)?,
            },
            definitions: Definitions::parse(&spec.define)?,
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn tolerance(option: &str, value: f64) -> Result<f64, Failure> {
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(Failure::usage(format!(
            "{option} {value}: a tolerance is a number from 0 on"
        )))
    }
}

/// The entry that fits the device best.
fn select<'a>(input: &'a Input, spec: &LaunchSpec, agent: &Agent) -> Result<&'a Entry, Failure> {
    let candidates = target::filter(
        &input.name,
        &input.entries,
        spec.entry,
        spec.target.as_deref(),
    )?;
    let device = agent.target();
    target::choose(&candidates, Some(&device))
        .map(|(entry, _reason)| entry)
        .ok_or_else(|| target::nothing_fits(input, &candidates, Some(&device)))
}

/// Reads `--kernarg-file`, which must have one of two sizes.
fn raw_kernarg(
    spec: &LaunchSpec,
    kernel: &crate::loader::Kernel,
) -> Result<Option<RawKernarg>, Failure> {
    let Some(path) = &spec.kernarg_file else {
        return Ok(None);
    };
    let content = std::fs::read(path).map_err(|error| Failure::io("read", path, &error))?;
    let whole = u64::from(kernel.kernarg_size());
    let end = |arg: &crate::loader::ArgMetadata| u64::from(arg.offset) + u64::from(arg.size);
    let explicit = kernel
        .metadata
        .as_ref()
        .map(|metadata| metadata.explicit_args().map(end).max().unwrap_or(0));
    let given = content.len() as u64;
    if given == whole {
        return Ok(Some(RawKernarg::Whole(content)));
    }
    // With or without the padding in front of the hidden ones.
    if Some(given) == explicit || Some(given) == explicit.map(|end| end.next_multiple_of(8)) {
        return Ok(Some(RawKernarg::Explicit(content)));
    }
    let wanted = match explicit {
        Some(explicit) => {
            format!("{explicit} bytes of explicit arguments or the whole segment of {whole}")
        }
        None => format!("a segment of {whole} bytes"),
    };
    Err(Failure::usage(format!(
        "{}: {given} bytes; kernel {} takes {wanted}",
        path.display(),
        kernel.name
    )))
}

/// Matches the options with the kernel's arguments, or fills them all where no option gives one.
#[expect(
    clippy::too_many_arguments,
    reason = "one call site; each is a different thing"
)]
fn bind(
    spec: &LaunchSpec,
    context: &Context,
    kernel: &Kernel,
    parameters: &[Parameter],
    args: &[ArgSpec],
    raw: bool,
    agent: &Agent,
    geometry: crate::dispatch::Geometry,
) -> Result<Bindings, Failure> {
    if kernel.metadata().is_none() {
        context.talk.warn(&format!(
            "kernel {} has no metadata: its arguments are unknown",
            kernel.name()
        ));
        if !args.is_empty() {
            let message = format!(
                "kernel {} has no metadata, so --arg has no place to go",
                kernel.name()
            );
            return Err(Failure::usage(message).hint("give --kernarg-file, or no arguments"));
        }
    }
    if raw {
        return Ok(Bindings::default());
    }
    if spec.arg.is_empty() {
        let limit = agent.info().memory_bytes / 2;
        return Ok(values::fill(
            parameters,
            geometry.grid_items(),
            geometry.workgroup_items(),
            limit,
        )?);
    }
    Ok(Bindings::bind(parameters, args)?)
}

/// Checks geometry and LDS before memory is taken.
fn geometry_check(kernel: &Kernel, options: &LaunchOptions, agent: &Agent) -> Result<(), Failure> {
    let mut requirements = kernel.requirements();
    requirements.uniform_workgroup_size &= !options.allow_partial;
    let check = options.geometry.check(
        &requirements,
        &agent.info().limits,
        options.dynamic_lds_bytes,
        0,
    );
    check.map_err(|source| {
        refused(DispatchError::Geometry {
            kernel: kernel.name().to_owned(),
            source,
        })
    })
}
