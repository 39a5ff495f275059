//! Values on the command line: scalars, buffers, structs, files, names, expectations.
//!
//! Knows: the grammar of CLI values and how values meet a kernel's arguments. Must not know: devices, code
//! objects, options. In the order of their use: `grammar` reads a word, `bind` matches words with arguments or
//! `auto` fills them, `buffer` makes contents, `compare` judges results.
mod auto;
mod bind;
mod buffer;
mod compare;
mod error;
mod grammar;
mod literal;
pub mod npy;
mod scalar;

pub use auto::{AutoError, fill};
pub use bind::{Binding, Bindings, Parameter, ParameterKind, Value, ValueSource, parameter_list};
pub use buffer::{Buffer, Init};
pub use compare::{Comparison, Mismatch, Tolerance};
pub use error::ValueError;
pub use grammar::{
    ArgSpec, BufferSpec, ExpectSpec, OutSpec, PrintSpec, Reference, StructSpec, ValueSpec,
};
pub use literal::Literal;
pub use scalar::{Scalar, ScalarType};
