//! `rocr load`: opens a file, says what is in it, and whether and why it would run.
//!
//! Knows: the options, entries, verdicts. Must not know: how code objects are parsed or placed.
mod describe;
mod disassemble;
mod occupancy;
mod render;

use super::Context;
use super::base64;
use super::define::{Defined, Definitions};
use super::device::DeviceView;
use super::failure::{Exit, Failure, with_causes};
use super::input::{self, Input};
use super::kernels::{self, KernelName};
use super::output::{Format, Outcome, Report, Table};
use super::target;
use crate::loader::container::Compression;
use crate::loader::{CodeObject, Entry, Kernel, Payload, Refusal, TargetId, Version};
use crate::runtime::LoadOptions;
use crate::runtime::LoadedExecutable;
use clap::Args;
use describe::{
    DescriptorView, FieldView, KernelView, NoteView, RelocationView, SegmentView, SymbolView,
};
use disassemble::CodeView;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Options of `rocr load`.
#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    /// Code object; - for stdin.
    #[arg(value_name = "FILE")]
    file: String,
    /// Only describe what the file holds; no device is needed.
    #[arg(long)]
    inspect: bool,
    /// List the entries only.
    #[arg(long)]
    list: bool,
    /// Show the metadata.
    #[arg(long)]
    metadata: bool,
    /// Show every field of the kernel descriptors.
    #[arg(long)]
    descriptors: bool,
    /// Show the symbols.
    #[arg(long)]
    symbols: bool,
    /// Show the relocations.
    #[arg(long)]
    relocations: bool,
    /// Show the segments.
    #[arg(long)]
    segments: bool,
    /// Show every byte of the kernarg segment by name.
    #[arg(long, value_name = "KERNEL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    kernarg: Option<String>,
    /// Disassemble a kernel, or everything.
    #[arg(
        long,
        value_name = "KERNEL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    disassemble: Option<String>,
    /// With --disassemble: show the source lines of code built with -g.
    #[arg(long, requires = "disassemble")]
    source: bool,
    /// Take entry N.
    #[arg(long, value_name = "N")]
    entry: Option<usize>,
    /// Keep the entries for this target.
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Resolve an external symbol: addr:0x…, or a buffer as for launch --arg, whose address is used.
    #[arg(long, value_name = "SYM=VALUE")]
    define: Vec<String>,
    /// Write every entry to a file in DIR, named after its target.
    #[arg(long, value_name = "DIR")]
    extract: Option<PathBuf>,
}

impl LoadArgs {
    /// Whether an option narrows the text to some parts.
    fn narrowed(&self) -> bool {
        self.list
            || self.metadata
            || self.descriptors
            || self.symbols
            || self.relocations
            || self.segments
            || self.kernarg.is_some()
            || self.disassemble.is_some()
    }
}

/// One entry of the file with its verdict.
#[derive(Clone, Debug)]
struct EntryView {
    index: usize,
    /// Bundle and entry within it, such as `2/1`.
    place: String,
    path: String,
    id: Option<String>,
    offload_kind: Option<String>,
    triple: Option<String>,
    kind: &'static str,
    target: Option<String>,
    version: Option<Version>,
    offset_bytes: u64,
    size_bytes: u64,
    compression: Option<Compression>,
    /// `None` where no device was asked.
    compatible: Option<bool>,
    reason: Option<String>,
    rule: Option<&'static str>,
    hsa_status: Option<&'static str>,
    /// Why its content could not be read.
    error: Option<String>,
    kernel_count: usize,
    /// Left out of text, which counts them.
    kernels: Vec<KernelView>,
}

/// The chosen entry in detail.
#[derive(Clone, Debug)]
struct Selected {
    index: usize,
    reason: String,
    kernels: Vec<KernelView>,
    segments: Vec<SegmentView>,
    relocations: Vec<RelocationView>,
    symbols: Vec<SymbolView>,
    notes: Vec<NoteView>,
    descriptors: Vec<DescriptorView>,
    kernarg: Vec<(String, Vec<FieldView>)>,
    code: Vec<CodeView>,
    /// The same as text.
    listing: Option<String>,
    metadata: Option<Vec<u8>>,
    metadata_yaml: Option<String>,
    printf: Vec<String>,
    warnings: Vec<String>,
    e_flags: u32,
    abi_version: u8,
}

/// The result of `rocr load`.
#[derive(Debug)]
struct LoadReport {
    file: String,
    size_bytes: u64,
    container: String,
    device: Option<DeviceView>,
    entries: Vec<EntryView>,
    selected: Option<Selected>,
    extracted: Vec<String>,
    parts: Parts,
}

/// What the text shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Parts {
    list: bool,
    kernels: bool,
    metadata: bool,
    descriptors: bool,
    symbols: bool,
    relocations: bool,
    segments: bool,
    kernarg: bool,
    disassembly: bool,
}

impl Parts {
    fn new(args: &LoadArgs) -> Parts {
        let all = !args.narrowed();
        Parts {
            list: args.list,
            kernels: all,
            metadata: args.metadata,
            descriptors: args.descriptors,
            symbols: args.symbols,
            relocations: args.relocations || all,
            segments: args.segments || all,
            kernarg: args.kernarg.is_some(),
            disassembly: args.disassemble.is_some(),
        }
    }

    /// Whether code is all that is shown.
    fn only_disassembly(self) -> bool {
        let code = Self {
            disassembly: true,
            ..Self::default()
        };
        self == code
    }
}

/// Runs the command.
pub(super) fn run(args: &LoadArgs, context: &Context) -> anyhow::Result<Outcome> {
    let definitions = Definitions::parse(&args.define)?;
    let input = input::read(&args.file, context)?;
    let candidates = target::filter(
        &input.name,
        &input.entries,
        args.entry,
        args.target.as_deref(),
    )?;
    let extracted = match &args.extract {
        Some(directory) => extract(&input, directory)?,
        None => Vec::new(),
    };
    let mut report = LoadReport {
        file: input.name.clone(),
        size_bytes: input.size_bytes,
        container: input
            .container
            .clone()
            .unwrap_or_else(|| "code object".to_owned()),
        device: None,
        entries: Vec::new(),
        selected: None,
        extracted,
        parts: Parts::new(args),
    };
    let opened = if args.inspect {
        Ok(None)
    } else {
        target::open_for(&input, &candidates, context, false).map(Some)
    };
    let (runtime, failure) = match opened {
        Ok(runtime) => (runtime, None),
        // The file is described all the same where it is the file that no device executes.
        Err(failure) if failure.exit == Exit::File => (None, Some(failure)),
        Err(failure) => return Err(failure.into()),
    };
    let agent = runtime
        .as_ref()
        .and_then(|runtime| runtime.agents().first());
    let device = agent.map(crate::runtime::Agent::target);
    report.device = runtime
        .as_ref()
        .zip(agent)
        .map(|(runtime, agent)| DeviceView::new(runtime, agent));
    report.entries = input
        .entries
        .iter()
        .map(|entry| entry_view(entry, device.as_ref(), args.list, context.format))
        .collect();
    let chosen = target::choose(&candidates, device.as_ref());
    let Some((entry, reason)) = chosen else {
        // what holds no object at all can be listed all the same
        if args.inspect {
            return Ok(Outcome::done(report, Exit::Good));
        }
        let failure =
            failure.unwrap_or_else(|| target::nothing_fits(&input, &candidates, device.as_ref()));
        return Ok(Outcome::failed(report, failure));
    };
    if args.list && (args.inspect || failure.is_some()) {
        return Ok(match failure {
            Some(failure) => Outcome::failed(report, failure),
            None => Outcome::done(report, Exit::Good),
        });
    }
    let object = match input.object(entry) {
        Ok(object) => object,
        Err(unreadable) => return Ok(Outcome::failed(report, failure.unwrap_or(unreadable))),
    };
    // an entry that another one hides is still part of what was asked about
    let failure = failure.or_else(|| {
        let mut objects = candidates.iter().filter(|entry| entry.payload.is_object());
        match args.inspect {
            true => objects.find_map(|entry| input.object(entry).err()),
            false => None,
        }
    });
    for warning in &object.warnings {
        context.talk.detail(&format!("{}: {warning}", input.name));
    }
    let defined = match agent {
        Some(agent) => definitions.place(agent, object)?,
        None => Defined::default(),
    };
    let loaded = agent.map(|agent| {
        let define = &defined.list();
        agent.load(object, &LoadOptions { define })
    });
    let executes = agent.and_then(|agent| target::executes(&input.name, agent).err());
    let (loaded, failure) = match loaded {
        Some(Ok(loaded)) => (Some(loaded), failure.or(executes)),
        Some(Err(error)) => (None, Some(Failure::executable(&input.name, &error))),
        None => (None, failure),
    };
    if !args.list {
        report.selected = Some(select(
            entry,
            object,
            &reason,
            args,
            loaded.as_ref(),
            context.format,
        )?);
    }
    Ok(match failure {
        Some(failure) => Outcome::failed(report, failure),
        None => Outcome::done(report, Exit::Good),
    })
}

fn entry_view(entry: &Entry, device: Option<&TargetId>, list: bool, format: Format) -> EntryView {
    // a list needs headers only; else what cannot be read is part of the verdict
    let object = (!list && entry.payload.is_object()).then(|| entry.object());
    let verdict = device.map(|device| entry.verdict(device));
    let refusal = verdict.as_ref().and_then(|verdict| verdict.as_ref().err());
    let id = entry.id.as_ref();
    let (bundle, number) = entry.place;
    let readable = object.and_then(Result::ok);
    let described = readable.filter(|_| format != Format::Human);
    let kernels = described.map(|object| {
        let all = object.kernels.iter();
        all.map(|kernel| KernelView::new(object, kernel)).collect()
    });
    EntryView {
        index: entry.index,
        place: format!("{bundle}/{number}"),
        path: entry.path.clone(),
        id: id.map(|id| id.text.clone()),
        offload_kind: id.map(|id| id.kind.to_string()),
        triple: id.map(|id| id.triple.clone()),
        kind: if entry.is_host() {
            "host"
        } else {
            entry.payload.as_str()
        },
        target: entry.target_text(),
        version: entry.payload.is_object().then(|| entry.version()).flatten(),
        offset_bytes: entry.offset(),
        size_bytes: entry.size(),
        compression: entry.compression,
        compatible: verdict.as_ref().map(Result::is_ok),
        reason: verdict.as_ref().map(|verdict| match verdict {
            Ok(kind) => kind.to_string(),
            Err(refusal) => with_causes(refusal),
        }),
        rule: refusal.map(Refusal::rule),
        hsa_status: refusal.and_then(|refusal| refusal.status().name()),
        error: object
            .and_then(|object| object.err())
            .map(|error| with_causes(error)),
        kernel_count: readable.map_or(0, |object| object.kernels.len()),
        kernels: kernels.unwrap_or_default(),
    }
}

fn select(
    entry: &Entry,
    object: &CodeObject,
    reason: &str,
    args: &LoadArgs,
    loaded: Option<&LoadedExecutable>,
    format: Format,
) -> Result<Selected, Failure> {
    let kernarg = match args.kernarg.as_deref() {
        None => Vec::new(),
        Some("") => object.kernels.iter().collect(),
        Some(name) => vec![find_kernel(object, name)?],
    };
    let (mut code, mut listing) = (Vec::new(), None);
    if let Some(name) = args.disassemble.as_deref() {
        let kernel = match name {
            "" => None,
            name => Some(find_kernel(object, name)?),
        };
        if format == Format::Human {
            listing = Some(disassemble::listing(object, kernel, args.source)?);
        } else {
            code = disassemble::disassemble(object, kernel, args.source)?;
        }
    }
    Ok(Selected {
        index: entry.index,
        reason: reason.to_owned(),
        kernels: object
            .kernels
            .iter()
            .map(|kernel| KernelView::new(object, kernel))
            .collect(),
        segments: describe::segments(object, loaded),
        relocations: describe::relocations(object, loaded),
        symbols: describe::symbols(object),
        notes: describe::notes(object),
        descriptors: if args.descriptors {
            object
                .kernels
                .iter()
                .map(|kernel| describe::descriptor(object, kernel))
                .collect()
        } else {
            Vec::new()
        },
        kernarg: kernarg
            .into_iter()
            .map(|kernel| (kernel.name.clone(), describe::kernarg(object, kernel)))
            .collect(),
        code,
        listing,
        metadata: object.metadata_bytes().map(<[u8]>::to_vec),
        metadata_yaml: object.metadata_yaml.clone(),
        printf: object
            .printf_formats()
            .iter()
            .map(|format| format.format.clone())
            .collect(),
        warnings: object.warnings.iter().map(ToString::to_string).collect(),
        e_flags: object.e_flags,
        abi_version: object.abi_version,
    })
}

/// The kernel that a word means.
fn find_kernel<'a>(object: &'a CodeObject, name: &str) -> Result<&'a Kernel, Failure> {
    Ok(&object.kernels[kernels::select(&kernel_names(object), Some(name))?])
}

/// The names of an object's kernels, for selection.
pub(super) fn kernel_names(object: &CodeObject) -> Vec<KernelName> {
    object
        .kernels
        .iter()
        .map(|kernel| KernelName::new(&kernel.name, &kernel.symbol))
        .collect()
}

/// Writes every entry that has bytes to a file of its own; the names are those of the targets, numbered where they
/// repeat.
fn extract(input: &Input, directory: &Path) -> Result<Vec<String>, Failure> {
    std::fs::create_dir_all(directory).map_err(|error| Failure::io("create", directory, &error))?;
    let mut names: Vec<String> = Vec::new();
    let mut taken: HashSet<String> = HashSet::new();
    for entry in &input.entries {
        let extension = match entry.payload {
            Payload::Empty => continue,
            Payload::CodeObject => "hsaco",
            Payload::Unlinked => "o",
            Payload::Bitcode => "bc",
            Payload::SpirV => "spv",
            _ => "bin",
        };
        let target = entry.target_text();
        let spelled = match &entry.id {
            Some(id) if entry.is_host() => id.text.as_str(),
            _ => target.as_deref().unwrap_or("unknown"),
        };
        // Colons and signs of features are legal in names, but shells and other systems trip over colons; and an
        // identifier may hold anything, separators of paths too.
        let stem: String = spelled
            .chars()
            .map(|c| match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '+' | '-' | '_' => c,
                _ => '_',
            })
            .collect();
        let mut name = format!("{stem}.{extension}");
        if !taken.insert(name.clone()) {
            name = format!("{stem}.{}.{extension}", entry.index);
            taken.insert(name.clone());
        }
        let path = directory.join(&name);
        std::fs::write(&path, &entry.bytes()[..])
            .map_err(|error| Failure::io("write", &path, &error))?;
        names.push(name);
    }
    Ok(names)
}

impl Report for LoadReport {
    fn json(&self) -> Map<String, Value> {
        let entry = |entry: &EntryView| {
            json!({
                "index": entry.index,
                "bundle_entry": entry.place,
                "path": entry.path,
                "id": entry.id,
                "offload_kind": entry.offload_kind,
                "triple": entry.triple,
                "kind": entry.kind,
                "target": entry.target,
                "code_object_version": entry.version.map(Version::number),
                "offset_bytes": entry.offset_bytes,
                "size_bytes": entry.size_bytes,
                "compression": entry.compression.map(|compression| json!({
                    "version": compression.version,
                    "method": compression.method.to_string(),
                    "offset_bytes": compression.offset,
                    "size_bytes": compression.size,
                })),
                "compatible": entry.compatible,
                "reason": entry.reason,
                "rule": entry.rule,
                "hsa_status": entry.hsa_status,
                "error": entry.error,
                "kernels": entry.kernels,
            })
        };
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("file", json!(self.file));
        put("size_bytes", json!(self.size_bytes));
        put("container", json!(self.container));
        put("device", json!(self.device));
        put("entries", self.entries.iter().map(entry).collect());
        put(
            "selected",
            json!(self.selected.as_ref().map(|selected| selected.index)),
        );
        if !self.extracted.is_empty() {
            put("extracted", json!(self.extracted));
        }
        let Some(selected) = &self.selected else {
            return object;
        };
        put("selected_reason", json!(selected.reason));
        put("e_flags", json!(selected.e_flags));
        put("abi_version", json!(selected.abi_version));
        put("kernels", json!(selected.kernels));
        put("segments", json!(selected.segments));
        put("relocations", json!(selected.relocations));
        put("symbols", json!(selected.symbols));
        put("notes", json!(selected.notes));
        put("printf_formats", json!(selected.printf));
        put("warnings", json!(selected.warnings));
        put(
            "metadata_base64",
            json!(selected.metadata.as_deref().map(base64::encode)),
        );
        if self.parts.metadata {
            put("metadata", render::metadata(selected.metadata.as_deref()));
            put("metadata_yaml", json!(selected.metadata_yaml));
        }
        if self.parts.descriptors {
            let one = |view: &DescriptorView| {
                let fields: Map<String, Value> = view
                    .fields
                    .iter()
                    .map(|(name, value)| (name.clone(), json!(value)))
                    .collect();
                json!({ "kernel": view.kernel, "fields": fields })
            };
            put(
                "descriptors",
                selected.descriptors.iter().map(one).collect(),
            );
        }
        if self.parts.disassembly {
            put("disassembly", json!(selected.code));
        }
        if self.parts.kernarg {
            let one = |(kernel, fields): &(String, Vec<FieldView>)| json!({ "kernel": kernel, "fields": fields });
            put("kernarg", selected.kernarg.iter().map(one).collect());
        }
        object
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        render::human(self, out)
    }

    fn csv(&self) -> Table {
        let mut table = Table::new([
            "entry",
            "target",
            "kernel",
            "vgpr_count",
            "agpr_count",
            "sgpr_count",
            "lds_size_bytes",
            "scratch_size_bytes",
            "wave_size",
            "max_flat_workgroup_size",
            "kernarg_segment_size_bytes",
            "occupancy_waves",
            "occupancy_limit",
        ]);
        for entry in &self.entries {
            for kernel in &entry.kernels {
                table.row([
                    entry.index.to_string(),
                    entry.target.clone().unwrap_or_default(),
                    kernel.name.clone(),
                    kernel.vgpr_count.to_string(),
                    kernel.agpr_count.to_string(),
                    kernel.sgpr_count.to_string(),
                    kernel.lds_size_bytes.to_string(),
                    kernel.scratch_size_bytes.to_string(),
                    kernel.wave_size.to_string(),
                    kernel.max_flat_workgroup_size.to_string(),
                    kernel.kernarg_segment_size_bytes.to_string(),
                    kernel
                        .occupancy_waves
                        .map(|waves| waves.to_string())
                        .unwrap_or_default(),
                    kernel.occupancy_limit.unwrap_or_default().to_owned(),
                ]);
            }
        }
        table
    }
}
