//! `rocr load` as text.
//!
//! Knows: the report. Must not know: code objects.
use super::describe::KernelView;
use super::{LoadReport, Selected};
use crate::cli::output::Table;
use crate::cli::units::human_bytes;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The metadata document as JSON; where it does not translate, null.
pub(super) fn metadata(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| {
        rmp_serde::from_slice(bytes).unwrap_or_else(|error| json!({ "reason": error.to_string() }))
    })
}

/// Writes the report, narrowed to the parts asked for.
pub(super) fn human(report: &LoadReport, out: &mut dyn Write) -> io::Result<()> {
    let mut head = Vec::new();
    write_head(report, &mut head)?;
    let only_code = report.parts.only_disassembly();
    for line in String::from_utf8_lossy(&head).lines() {
        // so that the whole can be given to an assembler
        writeln!(out, "{}{line}", if only_code { "// " } else { "" })?;
    }
    let Some(selected) = &report.selected else {
        return Ok(());
    };
    let parts = report.parts;
    if parts.kernels {
        selected
            .kernels
            .iter()
            .try_for_each(|kernel| write_kernel(out, kernel))?;
    }
    if parts.segments {
        write_segments(out, selected)?;
    }
    if parts.relocations {
        write_relocations(out, selected)?;
    }
    if parts.symbols {
        write_symbols(out, selected)?;
    }
    if parts.descriptors {
        for view in &selected.descriptors {
            writeln!(out, "\ndescriptor {}", view.kernel)?;
            for (name, value) in &view.fields {
                writeln!(out, "  {name} {value}")?;
            }
        }
    }
    if parts.kernarg {
        for (kernel, fields) in &selected.kernarg {
            writeln!(out, "\nkernarg segment of {kernel}")?;
            let mut table = Table::new(["offset", "size", "kind", "name"]);
            for field in fields {
                table.row([
                    field.offset_bytes.to_string(),
                    field.size_bytes.to_string(),
                    field.kind.to_owned(),
                    field.name.clone(),
                ]);
            }
            table.write_aligned(out, "  ")?;
        }
    }
    if let Some(listing) = &selected.listing {
        write!(out, "\n{listing}")?;
    }
    if parts.metadata {
        writeln!(out, "\nmetadata")?;
        match &selected.metadata_yaml {
            Some(yaml) => writeln!(out, "{}", yaml.trim_end())?,
            None => writeln!(out, "{:#}", metadata(selected.metadata.as_deref()))?,
        }
    }
    Ok(())
}

/// What the file is, and which of its entries the rest is about.
fn write_head(report: &LoadReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "file       {} ({}, {})",
        report.file,
        report.container,
        human_bytes(report.size_bytes)
    )?;
    if let Some(device) = &report.device {
        writeln!(out, "device     {device}")?;
    }
    write_entries(report, out)?;
    for name in &report.extracted {
        writeln!(out, "extracted  {name}")?;
    }
    if let Some(selected) = &report.selected {
        writeln!(
            out,
            "selected   entry {} ({})",
            selected.index, selected.reason
        )?;
    }
    Ok(())
}

fn write_entries(report: &LoadReport, out: &mut dyn Write) -> io::Result<()> {
    let bare = report.entries.iter().all(|entry| entry.id.is_none());
    let mut table = Table::new([
        "entry", "bundle", "within", "id", "target", "kind", "version", "offset", "size",
        "kernels", "verdict",
    ]);
    for entry in &report.entries {
        let verdict = match (entry.compatible, &entry.reason, &entry.error) {
            (Some(true), Some(reason), _) => format!("runs: {reason}"),
            (Some(false), Some(reason), _) => format!("does not run: {reason}"),
            (_, _, Some(error)) => format!("cannot be read: {error}"),
            _ => String::new(),
        };
        let offset = match &entry.compression {
            None => format!("{:#x}", entry.offset_bytes),
            Some(compression) => {
                format!(
                    "{compression} at {:#x}: {:#x}",
                    compression.offset, entry.offset_bytes
                )
            }
        };
        table.row([
            entry.index.to_string(),
            entry.place.clone(),
            entry.path.clone(),
            entry.id.clone().unwrap_or_default(),
            entry.target.clone().unwrap_or_default(),
            entry.kind.replace('_', " "),
            entry
                .version
                .map(|version| version.to_string())
                .unwrap_or_default(),
            offset,
            entry.size_bytes.to_string(),
            entry.kernel_count.to_string(),
            verdict,
        ]);
    }
    let mut unused = Vec::new();
    if bare {
        unused.push("id");
    }
    if bare && report.entries.len() == 1 {
        unused.push("bundle");
    }
    if report.entries.iter().all(|entry| entry.path.is_empty()) {
        unused.push("within");
    }
    if report.parts.list {
        unused.push("kernels");
    }
    if report.device.is_none() && report.entries.iter().all(|entry| entry.error.is_none()) {
        unused.push("verdict");
    }
    table.without(&unused).write_aligned(out, "")
}

fn write_kernel(out: &mut dyn Write, kernel: &KernelView) -> io::Result<()> {
    writeln!(
        out,
        "\nkernel {}{}",
        kernel.name,
        kernel
            .demangled
            .as_ref()
            .map(|name| format!("  {name}"))
            .unwrap_or_default()
    )?;
    match kernel.kind.as_str() {
        "normal" => {}
        "init" => writeln!(
            out,
            "  kind       init: to be launched once, before all others"
        )?,
        "fini" => writeln!(
            out,
            "  kind       fini: to be launched once, after all others"
        )?,
        other => writeln!(out, "  kind       {other}")?,
    }
    let agprs = if kernel.agpr_count > 0 {
        format!(", {} AGPRs", kernel.agpr_count)
    } else {
        String::new()
    };
    let mut spills = String::new();
    for (count, what) in [
        (kernel.vgpr_spill_count, "VGPR"),
        (kernel.sgpr_spill_count, "SGPR"),
    ] {
        if let Some(count) = count.filter(|count| *count > 0) {
            spills.push_str(&format!(", {count} {what} spills"));
        }
    }
    writeln!(
        out,
        "  registers  {} VGPRs{agprs}, {} SGPRs{spills}",
        kernel.vgpr_count, kernel.sgpr_count
    )?;
    let stack = if kernel.uses_dynamic_stack {
        " and a dynamic stack"
    } else {
        ""
    };
    writeln!(
        out,
        "  memory     {} bytes LDS, {} bytes scratch a work-item{stack}",
        kernel.lds_size_bytes, kernel.scratch_size_bytes
    )?;
    let required = kernel
        .reqd_workgroup_size
        .map(|[x, y, z]| format!(", required {x},{y},{z}"))
        .unwrap_or_default();
    writeln!(
        out,
        "  workgroup  wave{}, at most {} work-items{required}",
        kernel.wave_size, kernel.max_flat_workgroup_size
    )?;
    if let (Some(waves), Some(limit)) = (kernel.occupancy_waves, kernel.occupancy_limit) {
        writeln!(
            out,
            "  occupancy  {waves} waves a SIMD, limited by {}",
            limit.replace('_', " ")
        )?;
    }
    let preload = match kernel.kernarg_preload_dwords {
        0 => String::new(),
        dwords => format!(", {dwords} dwords preloaded"),
    };
    writeln!(
        out,
        "  kernarg    {} bytes{preload}",
        kernel.kernarg_segment_size_bytes
    )?;
    if !kernel.has_metadata {
        return writeln!(
            out,
            "  arguments  unknown: the metadata does not list this kernel"
        );
    }
    let mut table = Table::new(["arg", "name", "kind", "offset", "size", "type"]);
    let mut explicit = 0;
    for arg in &kernel.args {
        let number = if arg.hidden {
            String::new()
        } else {
            explicit.to_string()
        };
        explicit += usize::from(!arg.hidden);
        let space = arg
            .address_space
            .as_ref()
            .map(|space| format!("{space} "))
            .unwrap_or_default();
        let ty = arg
            .type_name
            .clone()
            .or_else(|| arg.value_type.clone())
            .unwrap_or_default();
        table.row([
            number,
            arg.name.clone().unwrap_or_default(),
            arg.value_kind.clone(),
            arg.offset_bytes.to_string(),
            arg.size_bytes.to_string(),
            format!("{space}{ty}").trim_end().to_owned(),
        ]);
    }
    if !table.rows.is_empty() {
        table.write_aligned(out, "  ")?;
    }
    Ok(())
}

fn write_segments(out: &mut dyn Write, selected: &Selected) -> io::Result<()> {
    writeln!(out, "\nsegments")?;
    let mut table = Table::new([
        "address",
        "loaded at",
        "offset",
        "in file",
        "in memory",
        "align",
        "flags",
    ]);
    for segment in &selected.segments {
        table.row([
            format!("{:#x}", segment.address),
            segment
                .load_address
                .map(|address| format!("{address:#x}"))
                .unwrap_or_default(),
            format!("{:#x}", segment.file_offset_bytes),
            segment.file_size_bytes.to_string(),
            segment.memory_size_bytes.to_string(),
            format!("{:#x}", segment.align_bytes),
            segment.flags.clone(),
        ]);
    }
    table.write_aligned(out, "  ")
}

fn write_relocations(out: &mut dyn Write, selected: &Selected) -> io::Result<()> {
    if selected.relocations.is_empty() {
        return writeln!(out, "\nrelocations: none");
    }
    writeln!(out, "\nrelocations")?;
    let mut table = Table::new(["offset", "type", "symbol", "addend", "value"]);
    for relocation in &selected.relocations {
        table.row([
            format!("{:#x}", relocation.offset),
            relocation.r#type.clone(),
            relocation.symbol.clone().unwrap_or_default(),
            relocation
                .addend
                .map(|addend| format!("{addend:#x}"))
                .unwrap_or_default(),
            relocation
                .value
                .map(|value| format!("{value:#x}"))
                .unwrap_or_default(),
        ]);
    }
    table.write_aligned(out, "  ")
}

fn write_symbols(out: &mut dyn Write, selected: &Selected) -> io::Result<()> {
    writeln!(out, "\nsymbols")?;
    let mut table = Table::new([
        "address",
        "size",
        "type",
        "binding",
        "visibility",
        "table",
        "name",
    ]);
    for symbol in &selected.symbols {
        table.row([
            if symbol.defined {
                format!("{:#x}", symbol.address)
            } else {
                "undefined".to_owned()
            },
            symbol.size_bytes.to_string(),
            symbol.r#type.clone(),
            symbol.binding.clone(),
            symbol.visibility.clone(),
            symbol.table.to_owned(),
            symbol.name.clone(),
        ]);
    }
    table.write_aligned(out, "  ")
}
