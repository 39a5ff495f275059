//! Everything that must exist to launch: the file opened, the code loaded, the arguments bound and allocated.
//!
//! Knows: the order in which these come about, and what each refuses. Must not know: reports, other options.
use super::arguments::{self, Buffers};
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
use crate::loader::Entry;
use crate::runtime::{
    Agent, Arguments, DeviceOutput, DispatchError, Kernel, LaunchOptions, LoadOptions,
    LoadedExecutable, PreparedArguments, Queue, QueueOptions, Runtime, WaitOptions,
};
use serde_json::json;
use std::time::Duration;

/// Everything that must exist to launch: opened, loaded, bound, allocated.
pub(in crate::cli) struct Session {
    runtime: Runtime,
    queue: Queue,
    kernel: Kernel,
    pub(super) executable: LoadedExecutable,
    parameters: Vec<Parameter>,
    pub(super) bindings: Bindings,
    pub(super) buffers: Buffers,
    settings: Vec<Setting>,
    defined: Defined,
    pristine: Pristine,
    pub(super) expectations: Vec<Expectation>,
    raw: Option<RawKernarg>,
    options: LaunchOptions,
    tolerance: Tolerance,
    timeout: Option<Duration>,
    file: String,
    entry: usize,
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
        let args: Vec<ArgSpec> = spec
            .arg
            .iter()
            .map(|word| ArgSpec::parse(word))
            .collect::<Result<_, _>>()?;
        let expects: Vec<ExpectSpec> = spec
            .expect
            .iter()
            .map(|word| ExpectSpec::parse(word))
            .collect::<Result<_, _>>()?;
        let tolerance = Tolerance {
            rtol: tolerance("--rtol", spec.rtol)?,
            atol: tolerance("--atol", spec.atol)?,
        };
        let definitions = Definitions::parse(&spec.define)?;
        let input = input::read(&spec.file, context)?;
        let (runtime, entry) = place(&input, spec, context)?;
        let agent = runtime
            .agents()
            .first()
            .cloned()
            .ok_or_else(|| Failure::new(Exit::Environment, "no_device", "there is no GPU"))?;
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
        let buffers = Buffers::allocate(&agent, &bindings)?;
        let queue = agent.create_queue(&QueueOptions::default())?;
        let pristine = Pristine::new(&executable)?;
        let timeout = context.timeout.unwrap_or(DEFAULT_TIMEOUT);
        Ok(Session {
            queue,
            kernel,
            executable,
            parameters,
            bindings,
            buffers,
            settings,
            defined,
            pristine,
            expectations,
            raw,
            options,
            tolerance,
            timeout: (!timeout.is_zero()).then_some(timeout),
            file: input.name.clone(),
            entry: entry.index,
            runtime,
        })
    }

    /// Fills buffers and globals with what they hold before a launch.
    pub(in crate::cli) fn initialise(&self) -> Result<(), Failure> {
        self.buffers.initialise(&self.bindings)?;
        self.defined.initialise()?;
        self.pristine.restore(&self.executable)?;
        self.settings
            .iter()
            .try_for_each(|setting| setting.apply(&self.executable))
    }

    /// Checks the launch and makes its kernarg segment.
    pub(in crate::cli) fn prepare(&self) -> Result<PreparedArguments, Failure> {
        let values = arguments::values(&self.bindings, &self.parameters, &self.buffers);
        let list = arguments::list(&self.bindings, &values, &self.buffers)?;
        let arguments = match &self.raw {
            Some(RawKernarg::Whole(bytes)) => Arguments::Segment(bytes),
            Some(RawKernarg::Explicit(bytes)) => Arguments::Explicit(bytes),
            None => Arguments::List(&list),
        };
        self.kernel
            .prepare(&self.queue, arguments, &self.options)
            .map_err(refused)
    }

    /// Launches and waits.
    pub(in crate::cli) fn launch(
        &self,
        prepared: &PreparedArguments,
    ) -> Result<crate::runtime::LaunchReport, DispatchError> {
        let launch = self
            .queue
            .launch_prepared(&self.kernel, prepared, &self.options)?;
        launch.wait(&WaitOptions {
            timeout: self.timeout,
            interrupted: Some(&interrupt::requested),
            ..WaitOptions::default()
        })
    }

    /// What the kernel has printed since the last call.
    pub(in crate::cli) fn take_output(&self) -> DeviceOutput {
        self.queue.take_output()
    }

    /// Checks every expectation.
    pub(in crate::cli) fn check(&mut self, launch: u64) -> Result<(), Failure> {
        self.expectations
            .iter_mut()
            .try_for_each(|expectation| expectation.check(&self.buffers, launch, self.tolerance))
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
        if show_kernarg {
            report.kernarg = self.kernarg_views(&prepared.kernarg);
        }
    }

    fn arg_views(&self) -> Vec<ArgView> {
        let view = |(index, (binding, parameter)): (usize, (&values::Binding, &Parameter))| {
            let address = self.buffers.get(index).map(|buffer| buffer.address().get());
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

/// Opens the device and takes the entry that fits it best.
fn place<'a>(
    input: &'a Input,
    spec: &LaunchSpec,
    context: &Context,
) -> Result<(Runtime, &'a Entry), Failure> {
    let candidates = target::filter(
        &input.name,
        &input.entries,
        spec.entry,
        spec.target.as_deref(),
    )?;
    let runtime = target::open_for(input, &candidates, context, spec.deterministic)?;
    let device = runtime.agents().first().map(Agent::target);
    let Some((entry, _reason)) = target::choose(&candidates, device.as_ref()) else {
        return Err(target::nothing_fits(input, &candidates, device.as_ref()));
    };
    Ok((runtime, entry))
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
    if Some(given) == explicit {
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
