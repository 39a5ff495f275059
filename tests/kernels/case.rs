//! What a whole-kernel test says: an object, launches, buffers, and what the
//! buffers must hold afterwards.
//!
//! Knows the fixtures' naming. Must not know any runtime: a case is data, and a
//! [`Backend`](super::backend::Backend) carries it out.

use std::fmt;
use std::path::PathBuf;

use super::data::Data;

/// The target and wave-size combinations that the fixtures and the corpus's samples are built for.
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
    // In the samples only.
    Gfx906,
    Gfx908,
    Gfx1013,
    Gfx1151,
    Gfx1200,
    Gfx9Generic,
    Gfx94Generic,
    Gfx103Generic,
    Gfx11Generic,
    Gfx12Generic,
}

impl Target {
    /// The targets that every fixture is built for.
    pub(crate) const MAIN: [Self; 4] = [
        Self::Gfx90a,
        Self::Gfx942,
        Self::Gfx1100,
        Self::Gfx1100Wave64,
    ];
    /// Those of the fixtures; those beside the main ones have the kernels only.
    pub(crate) const COMMITTED: [Self; 12] = [
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
    /// Those of the samples beside the committed ones.
    const OTHERS: [Self; 10] = [
        Self::Gfx906,
        Self::Gfx908,
        Self::Gfx1013,
        Self::Gfx1151,
        Self::Gfx1200,
        Self::Gfx9Generic,
        Self::Gfx94Generic,
        Self::Gfx103Generic,
        Self::Gfx11Generic,
        Self::Gfx12Generic,
    ];

    /// The target of a processor's name, if any build for it can be executed.
    pub(crate) fn of(processor: &str, wave64: bool) -> Option<Self> {
        let suffix = if wave64 { "-w64" } else { "" };
        let folder = format!("{processor}{suffix}");
        let mut all = Self::COMMITTED.into_iter().chain(Self::OTHERS);
        all.find(|target| target.folder() == folder)
    }

    /// The folder under `testdata/objects`, or the processor's name in the samples.
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
            Self::Gfx906 => "gfx906",
            Self::Gfx908 => "gfx908",
            Self::Gfx1013 => "gfx1013",
            Self::Gfx1151 => "gfx1151",
            Self::Gfx1200 => "gfx1200",
            Self::Gfx9Generic => "gfx9-generic",
            Self::Gfx94Generic => "gfx9-4-generic",
            Self::Gfx103Generic => "gfx10-3-generic",
            Self::Gfx11Generic => "gfx11-generic",
            Self::Gfx12Generic => "gfx12-generic",
        }
    }

    /// RDNA, which has rows of 16 lanes and waves of 32 by default.
    pub(crate) fn is_rdna(self) -> bool {
        self.folder().starts_with("gfx1")
    }

    pub(crate) fn wave_size(self) -> u32 {
        if self.is_rdna() && !self.folder().ends_with("-w64") {
            32
        } else {
            64
        }
    }

    /// Targets for which clang 19 and 22 form packed f32 instructions.
    fn packs_f32(self) -> bool {
        matches!(
            self,
            Self::Gfx90a | Self::Gfx942 | Self::Gfx94Generic | Self::Gfx950 | Self::Gfx1250
        )
    }

    /// Targets whose fixtures are built by clang 22, because clang 19 does not know them.
    fn is_unknown_to_clang_19(self) -> bool {
        matches!(self, Self::Gfx950 | Self::Gfx1250)
    }

    /// Targets whose fixtures are built with preloaded arguments too.
    pub(crate) fn preloads(self) -> bool {
        matches!(self, Self::Gfx90a | Self::Gfx942)
    }
}

/// The optimisation level an object was built at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    O0,
    O1,
    O2,
    O3,
}

impl Level {
    pub(crate) const ALL: [Self; 4] = [Self::O0, Self::O1, Self::O2, Self::O3];
}

/// The compiler that an object was built by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Compiler {
    Clang16,
    Clang19,
    Clang22,
}

/// One build of a kernel source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Build {
    pub(crate) target: Target,
    pub(crate) level: Level,
    pub(crate) compiler: Compiler,
}

impl Build {
    /// A committed fixture's build.
    pub(crate) fn fixture(target: Target, level: Level) -> Self {
        let compiler = if target.is_unknown_to_clang_19() {
            Compiler::Clang22
        } else {
            Compiler::Clang19
        };
        Self {
            target,
            level,
            compiler,
        }
    }

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

    /// Whether the compiler packs pairs of independent f32 operations, and
    /// then leaves products and sums apart that it would else have fused.
    pub(crate) fn packs_f32(self) -> bool {
        self.target.packs_f32() && self.level >= Level::O2
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
    /// For each element the bits that the source allows, where a compiler may
    /// fuse or not and a function may round one way or the other.
    Among(Vec<Data>),
    /// A property, for what is not one value: an order of atomics, or padding.
    Holds(Box<Property>),
}

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "Unchanged",
            Self::Exact(_) => "Exact",
            Self::Within { .. } => "Within",
            Self::Among(_) => "Among",
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

    /// A buffer that starts as poison and must satisfy `expect`; `like` gives
    /// its size and elements.
    pub(crate) fn expecting(like: impl Into<Data>, expect: Expected) -> Self {
        Self {
            init: like.into().poison(),
            expect,
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
    /// Symbols that the object leaves undefined, and the buffers they stand for.
    pub(crate) externals: Vec<(&'static str, usize)>,
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
            externals: Vec::new(),
            order_dependent: false,
        }
    }

    pub(crate) fn global(mut self, symbol: &'static str, want: impl Into<Data>) -> Self {
        let want = want.into();
        self.globals.push(GlobalCheck { symbol, want });
        self
    }

    pub(crate) fn external(mut self, symbol: &'static str, buffer: usize) -> Self {
        self.externals.push((symbol, buffer));
        self
    }

    pub(crate) fn order_dependent(mut self) -> Self {
        self.order_dependent = true;
        self
    }
}

/// A row of the case list. `name` starts with the object's number and names the
/// kernel; `make` computes inputs and expectations for one build. The name may
/// differ from `k..._` and the kernel's own by what follows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) object: &'static str,
    pub(crate) make: fn(Build) -> Case,
    /// Whether the samples alone have the object, and `testdata/objects` has not.
    pub(crate) samples_only: bool,
}

/// Rounds `n` up to a multiple of `step`.
pub(crate) fn round_up(n: u32, step: u32) -> u32 {
    n.div_ceil(step) * step
}
