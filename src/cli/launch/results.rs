//! What is done with buffers after a launch: expectations, prints, files.
//!
//! Knows: buffers' contents. Must not know: how they came about.
use super::arguments::{Buffers, CHUNK_BYTES};
use super::report::{ExpectationView, PrintView};
use crate::cli::failure::Failure;
use crate::cli::values::{
    Bindings, Buffer as Content, Comparison, ExpectSpec, Init, OutSpec, PrintSpec, Scalar,
    ScalarType, Tolerance, Value, ValueError, npy,
};
use crate::runtime::Buffer;
use std::io::Write;
use std::path::PathBuf;

/// Elements printed where no number is said.
const PRINTED: u64 = 16;

/// The content that an argument's buffer has at first.
fn content(bindings: &Bindings, name: &str) -> Result<(usize, Content), Failure> {
    let index = bindings.find(name)?;
    match bindings.list.get(index).map(|binding| &binding.value) {
        Some(Value::Buffer(content)) => Ok((index, content.clone())),
        _ => Err(ValueError::WrongForm {
            name: bindings.title(index),
            what: "it has no buffer of its own".to_owned(),
        }
        .into()),
    }
}

/// An expectation, ready to be checked after each launch.
#[derive(Debug)]
pub(super) struct Expectation {
    index: usize,
    want: Content,
    view: ExpectationView,
}

impl Expectation {
    /// Makes the expected content; the buffer's own type and count are taken where the option says none.
    pub(super) fn new(spec: &ExpectSpec, bindings: &Bindings) -> Result<Expectation, Failure> {
        let (index, buffer) = content(bindings, &spec.name)?;
        let title = bindings.title(index);
        let ty = spec.buffer.ty.unwrap_or(buffer.ty());
        let held = buffer.size_bytes() / ty.size_bytes() as u64;
        let count = match &spec.buffer.init {
            // A file says its own length, which must then be the buffer's.
            Init::File(_) => spec.buffer.count.unwrap_or(held),
            _ => spec.buffer.count.unwrap_or(held),
        };
        let want = Content::new(ty, Some(count), &spec.buffer.init)?;
        if want.size_bytes() > buffer.size_bytes() {
            let what = format!("{count} elements of {ty} are expected, its buffer holds {held}");
            return Err(ValueError::WrongForm { name: title, what }.into());
        }
        let view = ExpectationView {
            name: title,
            want: format!("{ty}[{count}]:{}", want.init_text()),
            comparison: Comparison::default(),
            first_failed_launch: None,
        };
        Ok(Expectation { index, want, view })
    }

    /// Compares; the first launch that is wrong is the one that is reported.
    pub(super) fn check(
        &mut self,
        buffers: &Buffers,
        launch: u64,
        tolerance: Tolerance,
    ) -> Result<(), Failure> {
        if self.view.first_failed_launch.is_some() {
            return Ok(());
        }
        let Some(buffer) = buffers.get(self.index) else {
            return Ok(());
        };
        let size = self.want.ty().size_bytes() as u64;
        let mut comparison = Comparison::default();
        let want = &self.want;
        chunks(buffer, want.size_bytes(), |offset, bytes| {
            comparison.add(bytes, want, offset / size, tolerance);
            Ok(())
        })?;
        self.view.comparison = comparison;
        if comparison.mismatches > 0 {
            self.view.first_failed_launch = Some(launch);
        }
        Ok(())
    }

    /// Forgets what was compared.
    pub(super) fn forget(&mut self) {
        self.view.comparison = Comparison::default();
        self.view.first_failed_launch = None;
    }

    /// For the report.
    pub(super) fn view(&self) -> ExpectationView {
        self.view.clone()
    }
}

/// Reads a buffer a chunk at a time; chunks are whole elements of every type.
fn chunks(
    buffer: &Buffer,
    size_bytes: u64,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut offset = 0;
    while offset < size_bytes {
        let mut bytes = vec![0; CHUNK_BYTES.min(size_bytes - offset) as usize];
        buffer.read(offset, &mut bytes)?;
        take(offset, &bytes)?;
        offset += bytes.len() as u64;
    }
    Ok(())
}

/// A buffer to print after the last launch.
#[derive(Debug)]
pub(super) struct Print {
    index: usize,
    name: String,
    ty: ScalarType,
    count: u64,
    shown: u64,
}

impl Print {
    pub(super) fn new(spec: &PrintSpec, bindings: &Bindings) -> Result<Print, Failure> {
        let (index, buffer) = content(bindings, &spec.name)?;
        let shown = spec.count.unwrap_or(PRINTED).min(buffer.count());
        Ok(Print {
            index,
            name: bindings.title(index),
            ty: buffer.ty(),
            count: buffer.count(),
            shown,
        })
    }

    pub(super) fn read(&self, buffers: &Buffers) -> Result<PrintView, Failure> {
        let size = self.ty.size_bytes();
        let mut bytes = vec![0; self.shown as usize * size];
        if let Some(buffer) = buffers.get(self.index) {
            buffer.read(0, &mut bytes)?;
        }
        Ok(PrintView {
            name: self.name.clone(),
            ty: self.ty.to_string(),
            count: self.count,
            values: bytes
                .chunks_exact(size)
                .filter_map(|bytes| Scalar::from_le_bytes(self.ty, bytes))
                .collect(),
        })
    }
}

/// A buffer to write to a file after the last launch.
#[derive(Debug)]
pub(super) struct Output {
    index: usize,
    ty: ScalarType,
    size_bytes: u64,
    path: PathBuf,
}

impl Output {
    pub(super) fn new(spec: &OutSpec, bindings: &Bindings) -> Result<Output, Failure> {
        let (index, buffer) = content(bindings, &spec.name)?;
        Ok(Output {
            index,
            ty: buffer.ty(),
            size_bytes: buffer.size_bytes(),
            path: spec.path.clone(),
        })
    }

    /// Writes the file in the format that its name says: `.npy`, `.csv`, else raw bytes. Gives the name.
    pub(super) fn write(&self, buffers: &Buffers) -> Result<String, Failure> {
        let mut content = Vec::new();
        if let Some(buffer) = buffers.get(self.index) {
            chunks(buffer, self.size_bytes, |_offset, bytes| {
                content.extend_from_slice(bytes);
                Ok(())
            })?;
        }
        let file = match self
            .path
            .extension()
            .and_then(|extension| extension.to_str())
        {
            Some("npy") => npy::write(self.ty, &content),
            Some("csv") => self.csv(&content),
            _ => content,
        };
        let failed = |error: std::io::Error| Failure::io("write", &self.path, &error);
        std::fs::File::create(&self.path)
            .and_then(|mut out| out.write_all(&file))
            .map_err(failed)?;
        Ok(self.path.display().to_string())
    }

    fn csv(&self, content: &[u8]) -> Vec<u8> {
        let mut text = String::from("index,value\n");
        for (index, bytes) in content.chunks_exact(self.ty.size_bytes()).enumerate() {
            if let Some(value) = Scalar::from_le_bytes(self.ty, bytes) {
                text.push_str(&format!("{index},{value}\n"));
            }
        }
        text.into_bytes()
    }
}
