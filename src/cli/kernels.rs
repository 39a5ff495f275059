//! Kernels by the names people give them: mangled, demangled, with `.kd`, or the beginning.
//!
//! Knows: names. Must not know: what a kernel is.
use super::failure::{Exit, Failure};

/// The names of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelName {
    /// The metadata's `.name`, as the compiler mangled it.
    pub name: String,
    /// The descriptor's symbol.
    pub symbol: String,
    /// The name as it was written in C++, where it is mangled.
    pub demangled: Option<String>,
}

impl KernelName {
    /// Names from the metadata; the demangled one is derived.
    pub(super) fn new(name: &str, symbol: &str) -> KernelName {
        KernelName {
            name: name.to_owned(),
            symbol: symbol.to_owned(),
            demangled: demangle(name),
        }
    }

    /// The name without parameters and template arguments' surroundings: `ns::f<int>` of `void ns::f<int>(int*)`.
    fn base(&self) -> Option<&str> {
        let full = self.demangled.as_deref()?;
        let end = full.find('(').unwrap_or(full.len());
        // A template's demangled name begins with its return type; operators have no place in kernels' names.
        let mut depth = 0_usize;
        let start = full[..end].char_indices().rev().find(|(_, c)| {
            match c {
                '>' => depth += 1,
                '<' => depth = depth.saturating_sub(1),
                _ => {}
            }
            *c == ' ' && depth == 0
        });
        Some(&full[start.map_or(0, |(at, _)| at + 1)..end])
    }

    fn spellings(&self) -> impl Iterator<Item = &str> {
        let known = [
            Some(self.name.as_str()),
            Some(self.symbol.as_str()),
            self.demangled.as_deref(),
            self.base(),
        ];
        known.into_iter().flatten()
    }

    /// For lists: the name, and what it means where that differs.
    pub(super) fn title(&self) -> String {
        match &self.demangled {
            Some(demangled) => format!("{} ({demangled})", self.name),
            None => self.name.clone(),
        }
    }
}

/// The C++ name of a mangled symbol.
pub(super) fn demangle(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    cpp_demangle::Symbol::new(name).ok()?.demangle().ok()
}

/// The index of the kernel that a word means; without one, the only kernel there is.
pub(super) fn select(kernels: &[KernelName], wanted: Option<&str>) -> Result<usize, Failure> {
    let missing = |message: String| Failure::new(Exit::File, "no_such_kernel", message);
    let list = || {
        kernels
            .iter()
            .map(KernelName::title)
            .collect::<Vec<_>>()
            .join("\n  ")
    };
    if kernels.is_empty() {
        return Err(missing("the code object has no kernels".to_owned()));
    }
    let Some(wanted) = wanted else {
        return match kernels.len() {
            1 => Ok(0),
            count => Err(Failure::new(
                Exit::File,
                "kernel_not_named",
                format!("the code object has {count} kernels: name one"),
            )
            .hint(format!("the kernels are\n  {}", list()))),
        };
    };
    // A name in full comes before the beginning of another.
    if let Some(index) = kernels
        .iter()
        .position(|kernel| kernel.spellings().any(|name| name == wanted))
    {
        let same = kernels
            .iter()
            .filter(|kernel| kernel.base() == Some(wanted))
            .count();
        let exact = kernels
            .iter()
            .any(|kernel| kernel.name == wanted || kernel.symbol == wanted);
        if exact || same <= 1 {
            return Ok(index);
        }
    }
    let begins: Vec<usize> = (0..kernels.len())
        .filter(|index| {
            kernels[*index]
                .spellings()
                .any(|name| name.starts_with(wanted))
        })
        .collect();
    match begins[..] {
        [index] if !wanted.is_empty() => Ok(index),
        [] => {
            let nearest = kernels.iter().min_by_key(|kernel| {
                kernel
                    .spellings()
                    .map(|name| distance(name, wanted))
                    .min()
                    .unwrap_or(usize::MAX)
            });
            let nearest = nearest
                .map(|kernel| kernel.name.clone())
                .unwrap_or_default();
            Err(
                missing(format!("no kernel `{wanted}`; did you mean `{nearest}`?"))
                    .hint(format!("the kernels are\n  {}", list())),
            )
        }
        _ => {
            let names: Vec<String> = begins.iter().map(|index| kernels[*index].title()).collect();
            Err(Failure::new(
                Exit::File,
                "ambiguous_kernel",
                format!("`{wanted}` begins {} kernels' names", begins.len()),
            )
            .hint(format!("give more of one of\n  {}", names.join("\n  "))))
        }
    }
}

/// Levenshtein's distance: insertions, deletions and substitutions from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels(names: &[&str]) -> Vec<KernelName> {
        names
            .iter()
            .map(|name| KernelName::new(name, &format!("{name}.kd")))
            .collect()
    }

    #[test]
    fn every_spelling_finds_its_kernel() {
        let list = kernels(&["vadd", "vadd4", "_Z5scalePff", "_ZN2ns4copyIiEEvPT_S2_"]);
        for (wanted, index) in [
            ("vadd", 0),
            ("vadd4", 1),
            ("vadd.kd", 0),
            ("vadd4.kd", 1),
            ("_Z5scalePff", 2),
            ("scale(float*, float)", 2),
            ("scale", 2),
            ("sca", 2),
            ("_ZN2ns", 3),
            ("ns::copy<int>", 3),
            ("ns::copy", 3),
            ("void ns::copy<int>(int*, int*)", 3),
        ] {
            assert_eq!(select(&list, Some(wanted)).unwrap(), index, "{wanted}");
        }
    }

    #[test]
    fn the_only_kernel_needs_no_name() {
        assert_eq!(select(&kernels(&["k"]), None).unwrap(), 0);
        let failure = select(&kernels(&["a", "b"]), None).unwrap_err();
        assert_eq!(
            (failure.exit, failure.code),
            (Exit::File, "kernel_not_named")
        );
        assert!(failure.hint.unwrap().contains("a\n  b"));
        assert_eq!(select(&[], Some("k")).unwrap_err().exit, Exit::File);
    }

    #[test]
    fn wrong_and_ambiguous_names_list_the_kernels() {
        let list = kernels(&["kst", "kreq", "kdyn", "_Z1fi", "_Z1fj"]);
        let wrong = select(&list, Some("kts")).unwrap_err();
        assert!(
            wrong.message.contains("did you mean `kst`")
                && wrong.hint.unwrap().contains("f(unsigned int)")
        );
        for wanted in ["k", "f", ""] {
            assert_eq!(
                select(&list, Some(wanted)).unwrap_err().code,
                "ambiguous_kernel",
                "{wanted}"
            );
        }
        assert_eq!(select(&list, Some("f(int)")).unwrap(), 3);
    }

    #[test]
    fn distances_are_levenshteins() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
