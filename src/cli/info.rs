//! `rocr info`: agents, targets, models, instructions, statuses.
//!
//! Knows: what agents report. Must not know: how a driver finds that out.
use super::device;
use super::explain::Explanations;
use super::failure::Exit;
use super::output::{Outcome, Report, Table};
use super::units::human_bytes;
use super::{Context, target};
use crate::isa::{IsaFamily, Row, Trust};
use crate::runtime::driver::{Cache, IoLink, PcieLink, PcieSpeed};
use crate::runtime::emulated::models;
use crate::runtime::{Agent, AgentInfo, AgentKind, PoolInfo, PoolKind, Runtime};
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Options of `rocr info`.
#[derive(Debug, Args)]
pub(super) struct InfoArgs {
    /// Print one GPU target a line.
    #[arg(long, group = "what")]
    targets: bool,
    /// List the embedded models.
    #[arg(long, group = "what")]
    models: bool,
    /// Say how many instructions of each encoding decode and execute.
    #[arg(
        long,
        group = "what",
        value_name = "TARGET",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    isa: Option<String>,
    /// Explain an HSA status by name, 0x number or bare digits.
    #[arg(long, group = "what", value_name = "CODE")]
    explain: Option<String>,
}

/// Runs the command.
pub(super) fn run(args: &InfoArgs, context: &Context) -> anyhow::Result<Outcome> {
    if let Some(text) = &args.explain {
        return Ok(Outcome::done(Explanations::find(text)?, Exit::Good));
    }
    if args.models {
        return Ok(Outcome::done(Models::new(), Exit::Good));
    }
    if let Some(name) = &args.isa {
        return Ok(Outcome::done(Instructions::new(name)?, Exit::Good));
    }
    let runtime = device::open(context, None, false)?;
    if args.targets {
        let targets = runtime
            .agents()
            .iter()
            .map(|agent| agent.target().to_string())
            .collect();
        return Ok(Outcome::done(Targets(targets), Exit::Good));
    }
    for agent in runtime.agents() {
        if let Some(warning) = slow_link(agent.info()) {
            context.talk.warn(&warning);
        }
    }
    Ok(Outcome::done(Agents::new(&runtime), Exit::Good))
}

/// What to say of an agent whose PCI Express link runs below its maximum.
fn slow_link(info: &AgentInfo) -> Option<String> {
    let link = info.pcie.filter(PcieLink::is_slower_than_it_may_be)?;
    Some(format!(
        "the PCIe link of {} (node {}{}) runs at {}, its maximum is {}; an idle GPU lowers its link, so look again while it works; \
         else its slot, a riser or a switch is the limit",
        info.product,
        info.node,
        info.bdf
            .as_deref()
            .map(|bdf| format!(", {bdf}"))
            .unwrap_or_default(),
        link.current,
        link.max,
    ))
}

/// `--targets`.
#[derive(Debug)]
struct Targets(Vec<String>);

impl Report for Targets {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([("targets".to_owned(), json!(self.0))])
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.0
            .iter()
            .try_for_each(|target| writeln!(out, "{target}"))
    }

    fn csv(&self) -> Table {
        let mut table = Table::new(["target"]);
        self.0
            .iter()
            .for_each(|target| table.row([target.as_str()]));
        table
    }
}

/// A model of `--models`.
#[derive(Debug, Serialize)]
struct ModelView {
    name: &'static str,
    product: &'static str,
    target: &'static str,
    compute_units: Option<u32>,
    memory_bytes: Option<u64>,
    clock_mhz: Option<u32>,
    executes: bool,
}

/// `--models`.
#[derive(Debug)]
struct Models(Vec<ModelView>);

/// Whether the embedded GPU has tables for a target's instructions.
fn executes(target: &str) -> bool {
    let id: Option<crate::loader::TargetId> = target.parse().ok();
    id.is_some_and(|id| target::has_tables(&id))
}

impl Models {
    fn new() -> Models {
        let products = models::MODELS.iter().map(|model| ModelView {
            name: model.name,
            product: model.product,
            target: model.target,
            compute_units: Some(model.compute_units),
            memory_bytes: Some(model.memory_mib << 20),
            clock_mhz: Some(model.clock_mhz),
            executes: executes(model.target),
        });
        let plain = models::plain_targets().map(|target| ModelView {
            name: target.name,
            product: target.name,
            target: target.name,
            compute_units: None,
            memory_bytes: None,
            clock_mhz: None,
            executes: executes(target.name),
        });
        Models(products.chain(plain).collect())
    }
}

impl Report for Models {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([("models".to_owned(), json!(self.0))])
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.csv().write_aligned(out, "")
    }

    fn csv(&self) -> Table {
        let mut table = Table::new([
            "name",
            "target",
            "executes",
            "compute units",
            "memory",
            "clock MHz",
            "product",
        ]);
        let number =
            |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
        for model in &self.0 {
            table.row([
                model.name.to_owned(),
                model.target.to_owned(),
                if model.executes { "yes" } else { "no" }.to_owned(),
                number(model.compute_units),
                model.memory_bytes.map(human_bytes).unwrap_or_default(),
                number(model.clock_mhz),
                model.product.to_owned(),
            ]);
        }
        table
    }
}

/// A line of `--isa`.
#[derive(Debug, Serialize)]
struct EncodingView {
    target: &'static str,
    encoding: String,
    slots: usize,
    decoded: usize,
    executed: usize,
    /// Executed slots by how far their semantics are proven.
    trust: BTreeMap<String, usize>,
    /// Mnemonics that decode and do not execute.
    missing: Vec<&'static str>,
}

/// `--isa`.
#[derive(Debug)]
struct Instructions(Vec<EncodingView>);

fn trust_name(trust: Trust) -> String {
    format!("{trust:?}").to_lowercase()
}

impl Instructions {
    fn new(name: &str) -> anyhow::Result<Instructions> {
        let families: Vec<IsaFamily> = if name.is_empty() {
            IsaFamily::ALL.to_vec()
        } else {
            let id = target::parse(name)?;
            let family = IsaFamily::of_target(id.target.name, id.target.family.name());
            vec![family.ok_or_else(|| {
                super::failure::Failure::new(
                    Exit::Usage,
                    "no_tables",
                    format!("instructions of {id} are not decoded"),
                )
            })?]
        };
        let mut views = Vec::new();
        for family in families {
            let mut encodings: BTreeMap<String, Vec<&'static Row>> = BTreeMap::new();
            for row in family.rows() {
                encodings
                    .entry(format!("{:?}", row.encoding).to_lowercase())
                    .or_default()
                    .push(row);
            }
            views.extend(encodings.into_iter().map(|(encoding, rows)| {
                let executes = |row: &&&Row| family.is_executed() && row.sem.is_ok();
                let mut trust = BTreeMap::new();
                for row in rows.iter().filter(executes) {
                    *trust.entry(trust_name(row.trust)).or_default() += 1;
                }
                EncodingView {
                    target: family.name(),
                    encoding,
                    slots: rows.len(),
                    decoded: rows.len(),
                    executed: rows.iter().filter(executes).count(),
                    trust,
                    missing: rows
                        .iter()
                        .filter(|row| row.sem.is_err())
                        .map(|row| row.mnemonic)
                        .collect(),
                }
            }));
        }
        Ok(Instructions(views))
    }
}

impl Report for Instructions {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([("isa".to_owned(), json!(self.0))])
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.csv().write_aligned(out, "")?;
        for view in self.0.iter().filter(|view| !view.missing.is_empty()) {
            writeln!(
                out,
                "\nnot executed, {} {}: {}",
                view.target,
                view.encoding,
                view.missing.join(" ")
            )?;
        }
        Ok(())
    }

    fn csv(&self) -> Table {
        let mut table = Table::new([
            "target", "encoding", "slots", "decoded", "executed", "trust",
        ]);
        for view in &self.0 {
            let trust: Vec<String> = view
                .trust
                .iter()
                .map(|(trust, count)| format!("{trust} {count}"))
                .collect();
            table.row([
                view.target.to_owned(),
                view.encoding.clone(),
                view.slots.to_string(),
                view.decoded.to_string(),
                view.executed.to_string(),
                trust.join(", "),
            ]);
        }
        table
    }
}

/// All agents.
#[derive(Debug)]
struct Agents {
    driver: String,
    driver_version: String,
    agents: Vec<Value>,
    table: Table,
    texts: Vec<Vec<(String, String)>>,
}

impl Agents {
    fn new(runtime: &Runtime) -> Agents {
        let (driver, version) = runtime.driver_version();
        let mut agents = Agents {
            driver: driver.to_owned(),
            driver_version: version.to_string(),
            agents: Vec::new(),
            table: Table::new([
                "kind",
                "name",
                "product",
                "isa",
                "node",
                "compute_units",
                "memory_bytes",
            ]),
            texts: Vec::new(),
        };
        for info in runtime.host_agents() {
            agents.add(info, &[]);
        }
        for agent in runtime.agents() {
            agents.add(agent.info(), &Agent::pools(agent));
        }
        agents
    }

    fn add(&mut self, info: &AgentInfo, pools: &[PoolInfo]) {
        let isa = info.target.map(|target| target.to_string());
        self.agents.push(agent_json(info, pools));
        self.table.row([
            kind(info.kind).to_owned(),
            info.name.clone(),
            info.product.clone(),
            isa.unwrap_or_default(),
            info.node.to_string(),
            info.compute_units.to_string(),
            info.memory_bytes.to_string(),
        ]);
        self.texts.push(agent_text(info, pools));
    }
}

fn kind(kind: AgentKind) -> &'static str {
    match kind {
        AgentKind::Cpu => "cpu",
        AgentKind::Gpu => "gpu",
        AgentKind::EmbeddedGpu => "embedded_gpu",
    }
}

fn pool_kind(kind: PoolKind) -> &'static str {
    match kind {
        PoolKind::CoarseGrained => "coarse_grained",
        PoolKind::FineGrained => "fine_grained",
        PoolKind::Kernarg => "kernarg",
    }
}

/// `HSA_IOLINKTYPE` of PCI Express.
const PCI_EXPRESS: u32 = 2;

fn link_type(link: &IoLink) -> String {
    match link.link_type {
        PCI_EXPRESS => "PCIe".to_owned(),
        11 => "XGMI".to_owned(),
        other => format!("type {other}"),
    }
}

/// 0 stands for "not known" in KFD's numbers.
fn known(number: u32) -> Option<u32> {
    (number != 0).then_some(number)
}

/// Why numbers of a link are null; `None` if none is.
fn unknown(link: &IoLink, pcie: Option<PcieLink>) -> Option<String> {
    let known = |of: fn(PcieLink) -> PcieSpeed| {
        pcie.map(of)
            .is_some_and(|speed| speed.mega_transfers_per_s.is_some() && speed.lanes.is_some())
    };
    let speeds = match (link.link_type, pcie) {
        (PCI_EXPRESS, None) => Some("the device has no PCI files that say the speed"),
        (PCI_EXPRESS, _) if !(known(|link| link.current) && known(|link| link.max)) => {
            Some("the device's PCI files do not say every speed and width")
        }
        (PCI_EXPRESS, _) => None,
        _ => Some("speeds and widths are known of PCIe only"),
    };
    let bandwidth = link.max_bandwidth_mb_per_s == 0 || link.min_bandwidth_mb_per_s == 0;
    let bandwidth = bandwidth.then_some("the driver does not say the bandwidth");
    let reasons: Vec<&str> = bandwidth.into_iter().chain(speeds).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn agent_json(info: &AgentInfo, pools: &[PoolInfo]) -> Value {
    let pool = |pool: &PoolInfo| {
        json!({
            "segment": "global",
            "kind": pool_kind(pool.kind),
            "size_bytes": pool.size_bytes,
            "granule_bytes": pool.granule_bytes,
            "alignment_bytes": pool.alignment_bytes,
            "accessible_by_all": pool.accessible_by_all,
        })
    };
    let cache = |cache: &Cache| json!({ "level": cache.level, "size_bytes": u64::from(cache.size_kib) << 10, "line_bytes": cache.line_bytes });
    let link = |link: &IoLink| {
        let pcie = info.pcie.filter(|_| link.link_type == PCI_EXPRESS);
        let speed = |of: fn(PcieLink) -> PcieSpeed| {
            let mega = pcie.map(of)?.mega_transfers_per_s?;
            Some(f64::from(mega) / 1000.0)
        };
        let lanes = |of: fn(PcieLink) -> PcieSpeed| pcie.map(of)?.lanes;
        json!({
            "type": link_type(link),
            "from_node": link.node_from,
            "to_node": link.node_to,
            "weight": link.weight,
            "min_bandwidth_bytes_per_s": known(link.min_bandwidth_mb_per_s).map(|mb| u64::from(mb) * 1_000_000),
            "max_bandwidth_bytes_per_s": known(link.max_bandwidth_mb_per_s).map(|mb| u64::from(mb) * 1_000_000),
            "current_speed_gt_per_s": speed(|link| link.current),
            "max_speed_gt_per_s": speed(|link| link.max),
            "current_lanes": lanes(|link| link.current),
            "max_lanes": lanes(|link| link.max),
            "reason": unknown(link, pcie),
        })
    };
    let is_gpu = info.kind != AgentKind::Cpu;
    let properties = &info.properties;
    json!({
        "kind": kind(info.kind),
        "name": info.name,
        "product": info.product,
        "uuid": info.uuid,
        "isa": info.target.map(|target| target.to_string()),
        "isas": info.isas,
        "node": info.node,
        "bdf": info.bdf,
        "compute_units": info.compute_units,
        "simds_per_cu": known(properties.simd_per_cu),
        "waves_per_simd": known(properties.max_waves_per_simd),
        "wave_size": known(properties.wave_front_size),
        "shader_arrays": known(properties.array_count),
        "xccs": known(properties.num_xcc),
        "clock_mhz": known(properties.max_engine_clk_fcompute.max(properties.max_engine_clk_ccompute)),
        "workgroup_max_size": is_gpu.then_some(info.limits.workgroup_max_size),
        "workgroup_max_dim": is_gpu.then_some(info.limits.workgroup_max_dim),
        "grid_max_dim": is_gpu.then_some(info.limits.grid_max_dim),
        "grid_max_size": is_gpu.then_some(info.limits.grid_max_size),
        "lds_size_bytes": is_gpu.then_some(info.limits.group_segment_max_bytes),
        "scratch_max_bytes": is_gpu.then_some(info.limits.private_segment_max_bytes),
        "queue_min_packets": is_gpu.then_some(info.queue_sizes.0),
        "queue_max_packets": is_gpu.then_some(info.queue_sizes.1),
        "queues_max": is_gpu.then_some(info.max_queues),
        "queue_type": is_gpu.then_some("multi"),
        "memory_bytes": info.memory_bytes,
        "memory_bus_bits": known(info.memory_bus_bits),
        "memory_clock_mhz": known(info.memory_clock_mhz),
        "caches": info.caches.iter().map(cache).collect::<Vec<_>>(),
        "memory_pools": pools.iter().map(pool).collect::<Vec<_>>(),
        "links": info.links.iter().map(link).collect::<Vec<_>>(),
    })
}

/// Name and value lines for people.
fn agent_text(info: &AgentInfo, pools: &[PoolInfo]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push((name.to_owned(), value));
    let embedded = if info.kind == AgentKind::EmbeddedGpu {
        " (embedded)"
    } else {
        ""
    };
    line(
        "agent",
        format!("{}{embedded}, {}", info.name, info.product),
    );
    line("kind", kind(info.kind).replace('_', " "));
    line("uuid", info.uuid.clone());
    line("node", info.node.to_string());
    if let Some(bdf) = &info.bdf {
        line("bdf", bdf.clone());
    }
    for isa in &info.isas {
        line("isa", isa.clone());
    }
    let properties = &info.properties;
    line("compute units", info.compute_units.to_string());
    if info.kind != AgentKind::Cpu {
        line(
            "SIMDs",
            format!(
                "{} a compute unit, {} waves each",
                properties.simd_per_cu, properties.max_waves_per_simd
            ),
        );
        line("wave size", properties.wave_front_size.to_string());
        let limits = &info.limits;
        let triple = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
        line(
            "workgroup",
            format!(
                "{} work-items, at most {}",
                limits.workgroup_max_size,
                triple(limits.workgroup_max_dim)
            ),
        );
        line(
            "grid",
            format!(
                "{} work-items, at most {}",
                limits.grid_max_size,
                triple(limits.grid_max_dim)
            ),
        );
        line(
            "LDS",
            human_bytes(u64::from(limits.group_segment_max_bytes)),
        );
        line(
            "scratch",
            format!(
                "{} a work-item",
                human_bytes(u64::from(limits.private_segment_max_bytes))
            ),
        );
        line(
            "queues",
            format!(
                "{} of {} to {} packets, multi-producer",
                info.max_queues, info.queue_sizes.0, info.queue_sizes.1
            ),
        );
    }
    if let Some(clock) = known(
        properties
            .max_engine_clk_fcompute
            .max(properties.max_engine_clk_ccompute),
    ) {
        line("clock", format!("{clock} MHz"));
    }
    let mut memory = human_bytes(info.memory_bytes);
    if let (Some(bits), Some(clock)) = (known(info.memory_bus_bits), known(info.memory_clock_mhz)) {
        memory.push_str(&format!(", {bits} bits at {clock} MHz"));
    }
    line("memory", memory);
    for cache in &info.caches {
        let size = human_bytes(u64::from(cache.size_kib) << 10);
        line(
            "cache",
            format!(
                "L{} {size}, lines of {} bytes",
                cache.level, cache.line_bytes
            ),
        );
    }
    for pool in pools {
        let all = if pool.accessible_by_all {
            ", accessible by all"
        } else {
            ""
        };
        line(
            "pool",
            format!(
                "global {}, {}, granule {}, alignment {}{all}",
                pool_kind(pool.kind).replace('_', " "),
                human_bytes(pool.size_bytes),
                human_bytes(pool.granule_bytes),
                human_bytes(pool.alignment_bytes)
            ),
        );
    }
    for link in &info.links {
        let bandwidth = known(link.max_bandwidth_mb_per_s)
            .map_or_else(|| "unknown bandwidth".to_owned(), |mb| format!("{mb} MB/s"));
        let speed = info
            .pcie
            .filter(|_| link.link_type == PCI_EXPRESS)
            .map(|pcie| format!(", {} of at most {}", pcie.current, pcie.max))
            .unwrap_or_default();
        line(
            "link",
            format!(
                "{} to node {}, weight {}, {bandwidth}{speed}",
                link_type(link),
                link.node_to,
                link.weight
            ),
        );
    }
    lines
}

impl Report for Agents {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([
            (
                "driver".to_owned(),
                json!({ "name": self.driver, "version": self.driver_version }),
            ),
            ("agents".to_owned(), json!(self.agents)),
        ])
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "driver         {}, interface {}",
            self.driver, self.driver_version
        )?;
        for lines in &self.texts {
            writeln!(out)?;
            for (name, value) in lines {
                writeln!(out, "{name:<14} {value}")?;
            }
        }
        Ok(())
    }

    fn csv(&self) -> Table {
        self.table.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::DeviceSelection;
    use crate::runtime::driver::PcieSpeed;

    #[test]
    fn case_80_links_have_units_and_null_where_nothing_is_known() {
        let runtime = Runtime::open(&DeviceSelection::default(), None).unwrap();
        let mut info = runtime.agents()[0].info().clone();
        let json = agent_json(&info, &[]);
        let link = &json["links"][0];
        assert_eq!(link["type"], "PCIe");
        for key in [
            "current_speed_gt_per_s",
            "max_speed_gt_per_s",
            "current_lanes",
            "max_lanes",
        ] {
            assert!(link[key].is_null() && link.get(key).is_some(), "{link}");
        }
        // the bandwidth is known, the speeds are not: each null has a reason
        info.links[0].min_bandwidth_mb_per_s = 32_000;
        info.links[0].max_bandwidth_mb_per_s = 32_000;
        let json = agent_json(&info, &[]);
        let link = &json["links"][0];
        assert_eq!(link["max_bandwidth_bytes_per_s"], 32_000_000_000_u64);
        assert_eq!(
            link["reason"],
            "the device has no PCI files that say the speed"
        );
        assert_eq!(slow_link(&info), None);

        let at = |mega, lanes| PcieSpeed {
            mega_transfers_per_s: Some(mega),
            lanes,
        };
        info.pcie = Some(PcieLink {
            current: at(2500, None),
            max: at(16_000, Some(16)),
        });
        let json = agent_json(&info, &[]);
        let link = &json["links"][0];
        assert_eq!(link["current_speed_gt_per_s"], 2.5);
        assert_eq!(link["max_speed_gt_per_s"], 16.0);
        assert_eq!(
            (&link["current_lanes"], &link["max_lanes"]),
            (&Value::Null, &json!(16))
        );
        assert_eq!(
            link["reason"],
            "the device's PCI files do not say every speed and width"
        );
        let text = agent_text(&info, &[]);
        let (_, line) = text.iter().find(|(name, _)| name == "link").unwrap();
        assert!(
            line.ends_with(", 2.5 GT/s of at most 16 GT/s x16"),
            "{line}"
        );
        let warning = slow_link(&info).unwrap();
        assert!(
            warning.contains("runs at 2.5 GT/s, its maximum is 16 GT/s x16"),
            "{warning}"
        );
        info.pcie = Some(PcieLink {
            current: at(16_000, Some(16)),
            max: at(16_000, Some(16)),
        });
        assert_eq!(
            agent_json(&info, &[])["links"][0]["reason"],
            Value::Null,
            "nothing is unknown"
        );
        info.links[0].max_bandwidth_mb_per_s = 0;
        assert_eq!(
            agent_json(&info, &[])["links"][0]["reason"],
            "the driver does not say the bandwidth"
        );
    }
}
