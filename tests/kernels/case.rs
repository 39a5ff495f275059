//! What a whole-kernel test says: an object, launches, buffers, and what the
//! buffers must hold afterwards.
//!
//! Knows the fixtures' naming. Must not know any runtime: a case is data, and a
//! [`Backend`](super::backend::Backend) carries it out.

use std::fmt;
use std::path::PathBuf;

use super::data::Data;

/// The target and wave-size combinations that the fixtures are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Gfx90a,
    Gfx942,
    Gfx1100,
    Gfx1100Wave64,
    Gfx900,
    Gfx1010,
    Gfx1030,
    Gfx1030Wave64,
    Gfx1201,
    Gfx1201Wave64,
    Gfx950,
    Gfx1250,
}

impl Target {
    /// The targets that every object is built for.
    pub(crate) const MAIN: [Self; 4] = [
        Self::Gfx90a,
        Self::Gfx942,
        Self::Gfx1100,
        Self::Gfx1100Wave64,
    ];
    /// All of them; those beside the main ones have the kernels only.
    pub(crate) const ALL: [Self; 12] = [
        Self::Gfx90a,
        Self::Gfx942,
        Self::Gfx1100,
        Self::Gfx1100Wave64,
        Self::Gfx900,
        Self::Gfx1010,
        Self::Gfx1030,
        Self::Gfx1030Wave64,
        Self::Gfx1201,
        Self::Gfx1201Wave64,
        Self::Gfx950,
        Self::Gfx1250,
    ];

    /// The folder under `testdata/objects`.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
            Self::Gfx1100 => "gfx1100",
            Self::Gfx1100Wave64 => "gfx1100-w64",
            Self::Gfx900 => "gfx900",
            Self::Gfx1010 => "gfx1010",
            Self::Gfx1030 => "gfx1030",
            Self::Gfx1030Wave64 => "gfx1030-w64",
            Self::Gfx1201 => "gfx1201",
            Self::Gfx1201Wave64 => "gfx1201-w64",
            Self::Gfx950 => "gfx950",
            Self::Gfx1250 => "gfx1250",
        }
    }

    pub(crate) fn wave_size(self) -> u32 {
        match self {
            Self::Gfx1100 | Self::Gfx1010 | Self::Gfx1030 | Self::Gfx1201 | Self::Gfx1250 => 32,
            _ => 64,
        }
    }

    /// Targets for which the compiler forms packed f32 instructions.
    pub(crate) fn packs_f32(self) -> bool {
        matches!(self, Self::Gfx90a | Self::Gfx942) || self.is_built_by_clang_22()
    }

    /// Targets that clang 19 does not know.
    pub(crate) fn is_built_by_clang_22(self) -> bool {
        matches!(self, Self::Gfx950 | Self::Gfx1250)
    }

    /// Targets whose kernels are built with preloaded arguments too.
    pub(crate) fn preloads(self) -> bool {
        matches!(self, Self::Gfx90a | Self::Gfx942)
    }
}

/// The optimisation level an object was built at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    O0,
    O2,
    O3,
}

impl Level {
    pub(crate) const ALL: [Self; 3] = [Self::O0, Self::O2, Self::O3];
}

/// One build of a kernel source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Build {
    pub(crate) target: Target,
    pub(crate) level: Level,
}

impl Build {
    /// Where the fixture of `object` lies; the file may be absent, as an `O3`
    /// object equal to the `O2` one is not kept.
    pub(crate) fn path(self, object: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("testdata/objects")
            .join(self.target.folder())
            .join(format!("{:?}", self.level))
            .join(object)
            .with_extension("hsaco")
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.target.folder().replace('-', "_");
        write!(f, "{folder}_{}", format!("{:?}", self.level).to_lowercase())
    }
}

/// A statement about a buffer's bytes; the error says what is wrong.
pub(crate) type Property = dyn Fn(&[u8]) -> Result<(), String>;

/// What a buffer must hold after the last launch.
pub(crate) enum Expected {
    /// What it held before.
    Unchanged,
    /// These bits. For floats too: the reference follows the kernel's
    /// arithmetic operation by operation.
    Exact(Data),
    /// `|got - want| <= atol + rtol * |want|`, for floats that went through a
    /// transcendental function whose last bits no specification fixes.
    Within { want: Data, rtol: f64, atol: f64 },
    /// A property, for what is not one value: an order of atomics, or padding.
    Holds(Box<Property>),
}

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "Unchanged",
            Self::Exact(_) => "Exact",
            Self::Within { .. } => "Within",
            Self::Holds(_) => "Holds",
        })
    }
}

/// A buffer in device memory.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) init: Data,
    pub(crate) expect: Expected,
}

impl Buffer {
    /// A buffer that the kernel only reads.
    pub(crate) fn input(init: impl Into<Data>) -> Self {
        Self {
            init: init.into(),
            expect: Expected::Unchanged,
        }
    }

    /// A buffer that starts as poison and must end as `want`, bit for bit.
    pub(crate) fn output(want: impl Into<Data>) -> Self {
        let want = want.into();
        Self {
            init: want.poison(),
            expect: Expected::Exact(want),
        }
    }

    /// A buffer that is read and written.
    pub(crate) fn in_out(init: impl Into<Data>, want: impl Into<Data>) -> Self {
        Self {
            init: init.into(),
            expect: Expected::Exact(want.into()),
        }
    }
}

/// One explicit kernel argument.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    /// The address of a buffer (its index in the case), plus bytes.
    Buffer(usize, u64),
    /// A by-value argument's bytes.
    Value(Vec<u8>),
    /// A by-value struct with addresses in it: (byte offset, buffer).
    Struct(Vec<u8>, Vec<(usize, usize)>),
    /// A `local` pointer: bytes of dynamic LDS.
    Local(u32),
}

/// A buffer argument.
pub(crate) fn buf(index: usize) -> Arg {
    Arg::Buffer(index, 0)
}

/// A scalar argument.
pub(crate) fn val<T: super::data::Element>(value: T) -> Arg {
    Arg::Value(Data::from(vec![value]).into_bytes())
}

/// One dispatch.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) kernel: &'static str,
    /// Work-items, as in the AQL packet.
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u16; 3],
    pub(crate) dimensions: u16,
    /// Bytes of dynamic LDS that no [`Arg::Local`] accounts for.
    pub(crate) dynamic_lds: u32,
    pub(crate) args: Vec<Arg>,
    /// Launches on one queue run one after the other; queues run side by side.
    pub(crate) queue: usize,
}

impl Launch {
    /// `grid` work-items in one dimension.
    pub(crate) fn new(kernel: &'static str, grid: u32, block: u16, args: Vec<Arg>) -> Self {
        Self {
            kernel,
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            dimensions: 1,
            dynamic_lds: 0,
            args,
            queue: 0,
        }
    }

    /// Two dimensions.
    pub(crate) fn grid2(mut self, grid: [u32; 2], block: [u16; 2]) -> Self {
        self.grid = [grid[0], grid[1], 1];
        self.block = [block[0], block[1], 1];
        self.dimensions = 2;
        self
    }

    /// Three dimensions.
    pub(crate) fn grid3(mut self, grid: [u32; 3], block: [u16; 3]) -> Self {
        self.grid = grid;
        self.block = block;
        self.dimensions = 3;
        self
    }

    pub(crate) fn dynamic_lds(mut self, bytes: u32) -> Self {
        self.dynamic_lds = bytes;
        self
    }

    pub(crate) fn on_queue(mut self, queue: usize) -> Self {
        self.queue = queue;
        self
    }
}

/// A device variable's value after the last launch.
#[derive(Debug)]
pub(crate) struct GlobalCheck {
    pub(crate) symbol: &'static str,
    pub(crate) want: Data,
}

/// One test: launches on fresh buffers of one freshly loaded object.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) object: &'static str,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) launches: Vec<Launch>,
    pub(crate) globals: Vec<GlobalCheck>,
    /// The bits depend on the order of atomics, so that only deterministic
    /// runs can be compared with each other.
    pub(crate) order_dependent: bool,
}

impl Case {
    pub(crate) fn new(object: &'static str, buffers: Vec<Buffer>, launches: Vec<Launch>) -> Self {
        Self {
            object,
            buffers,
            launches,
            globals: Vec::new(),
            order_dependent: false,
        }
    }

    pub(crate) fn global(mut self, symbol: &'static str, want: impl Into<Data>) -> Self {
        let want = want.into();
        self.globals.push(GlobalCheck { symbol, want });
        self
    }

    pub(crate) fn order_dependent(mut self) -> Self {
        self.order_dependent = true;
        self
    }
}

/// A row of the case list. `name` starts with the object's number and names the
/// kernel; `make` computes inputs and expectations for one build, or gives
/// nothing where the build has no such kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) object: &'static str,
    pub(crate) make: fn(Build) -> Case,
}

/// Rounds `n` up to a multiple of `step`.
pub(crate) fn round_up(n: u32, step: u32) -> u32 {
    n.div_ceil(step) * step
}
