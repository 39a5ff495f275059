//! Layer `dispatch`.
