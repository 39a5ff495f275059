//! `rocr run --trace`: the lines that the program's processes have written, put together.
//!
//! Knows: Chrome's trace event format (JSON object form), the lines of the preload library: an event each, where process 0
//! is the host and 1 + N the GPU N. Must not know: what the events are.
use super::failure::Failure;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A trace to be.
#[derive(Debug)]
pub(super) struct RunTrace {
    path: PathBuf,
    out: File,
    /// CLOCK_MONOTONIC in ns when the program was started.
    origin: u64,
}

impl RunTrace {
    /// Creates the file, before anything is run for it.
    pub(super) fn new(path: &Path) -> Result<RunTrace, Failure> {
        let out = File::create(path).map_err(|error| Failure::io("write", path, &error))?;
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Ok(RunTrace {
            path: path.to_owned(),
            out,
            origin: now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64,
        })
    }

    /// Writes what the processes have left in `folder`, for GPUs of these names.
    pub(super) fn finish(self, folder: &Path, gpus: &[String]) -> Result<(), Failure> {
        let written = write(&self.out, folder, gpus, self.origin);
        written.map_err(|error| Failure::io("write", &self.path, &error))
    }
}

fn write(out: &File, folder: &Path, gpus: &[String], origin: u64) -> std::io::Result<()> {
    let mut out = BufWriter::new(out);
    let mut separator = "";
    let mut put = |out: &mut BufWriter<&File>, event: &Value| {
        write!(out, "{separator}\n{event}")?;
        separator = ",";
        std::io::Result::Ok(())
    };
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for (number, (process, path)) in files(folder)?.into_iter().enumerate() {
        let first = number * (1 + gpus.len());
        let host = format!("process {process}");
        for (offset, name) in std::iter::once(&host).chain(gpus).enumerate() {
            put(
                &mut out,
                &json!({
                    "name": "process_name", "ph": "M", "pid": first + offset,
                    "args": { "name": name },
                }),
            )?;
        }
        let mut queues = BTreeSet::new();
        for line in BufReader::new(File::open(path)?).lines() {
            // The last line of a process that was killed may be torn.
            let Ok(mut event) = serde_json::from_str::<Value>(&line?) else {
                continue;
            };
            let own = event["pid"].as_u64().unwrap_or(0);
            if own > 0 {
                queues.insert((own, event["tid"].as_u64().unwrap_or(0)));
            }
            event["pid"] = json!(first as u64 + own);
            let start = event["ts"].as_f64().unwrap_or(0.0);
            event["ts"] = json!(start - origin as f64 / 1000.0);
            put(&mut out, &event)?;
        }
        for (gpu, queue) in queues {
            put(
                &mut out,
                &json!({
                    "name": "thread_name", "ph": "M", "pid": first as u64 + gpu, "tid": queue,
                    "args": { "name": format!("queue {queue}") },
                }),
            )?;
        }
    }
    writeln!(out, "\n]}}")?;
    out.flush()
}

/// The files of the processes, by the process's number.
fn files(folder: &Path) -> std::io::Result<Vec<(u32, PathBuf)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let process = path
            .file_name()
            .and_then(|name| {
                name.to_str()?
                    .strip_prefix("trace-")?
                    .strip_suffix(".jsonl")
            })
            .and_then(|number| number.parse().ok());
        files.extend(process.map(|process| (process, path)));
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_put_together_and_torn_lines_left_out() {
        let folder = std::env::temp_dir().join(format!("rocr-trace-test-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (process, text) in [
            (
                11,
                "{\"name\":\"a\",\"ph\":\"X\",\"ts\":1500.5,\"dur\":1,\"pid\":2,\"tid\":7}\n{\"name\":\"to",
            ),
            (
                9,
                "{\"name\":\"b\",\"ph\":\"X\",\"ts\":1501.0,\"dur\":1,\"pid\":0,\"tid\":5}\n",
            ),
        ] {
            std::fs::write(folder.join(format!("trace-{process}.jsonl")), text).unwrap();
        }
        let path = folder.join("out.json");
        let mut trace = RunTrace::new(&path).unwrap();
        trace.origin = 1_000_000;
        trace
            .finish(&folder, &[String::from("first"), String::from("second")])
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        let find = |name: &str| events.iter().find(|event| event["name"] == name).unwrap();
        // Process 9 comes first, with 3 numbers; the second GPU of process 11 is 3 + 2.
        assert_eq!(
            (&find("b")["pid"], &find("b")["ts"]),
            (&json!(0), &json!(501.0))
        );
        assert_eq!(
            (&find("a")["pid"], &find("a")["ts"]),
            (&json!(5), &json!(500.5))
        );
        assert_eq!(events.len(), 2 * 3 + 2 + 1);
        let queue = find("thread_name");
        assert_eq!((&queue["pid"], &queue["tid"]), (&json!(5), &json!(7)));
    }
}
