//! `--device`: which agent a command runs on.
//!
//! Knows: the selector's grammar. Must not know: which models exist (the runtime's catalogue says that).
use super::failure::Failure;

/// The most embedded devices that one run may have.
const MAX_DEVICES: u32 = 64;

/// A device as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSelector {
    /// `kfd`, `kfd:N`: a real GPU, the N-th one.
    Kfd(Option<u32>),
    /// `emu`, `emu:MODEL`, `emu:MODEL*N`, or a bare MODEL.
    Emulated {
        /// A target or a product; without one, the file's own target.
        model: Option<String>,
        /// How many.
        count: u32,
    },
}

impl DeviceSelector {
    /// Reads a selector.
    pub fn parse(text: &str) -> Result<DeviceSelector, Failure> {
        let malformed = || {
            Failure::usage(format!("`{text}` is not a device"))
                .hint("give kfd, kfd:N, emu, emu:MODEL, emu:MODEL*N, or a target or product such as gfx942 or mi300x")
        };
        if text == "kfd" {
            return Ok(DeviceSelector::Kfd(None));
        }
        if let Some(number) = text.strip_prefix("kfd:") {
            return number
                .parse()
                .map(|n| DeviceSelector::Kfd(Some(n)))
                .map_err(|_no_number| malformed());
        }
        if text == "emu" {
            return Ok(DeviceSelector::Emulated {
                model: None,
                count: 1,
            });
        }
        let model = text.strip_prefix("emu:").unwrap_or(text);
        let (model, count) = match model.split_once('*') {
            Some((model, count)) => (model, count.parse().map_err(|_no_number| malformed())?),
            None => (model, 1),
        };
        if model.is_empty() || count == 0 {
            return Err(malformed());
        }
        if count > MAX_DEVICES {
            return Err(Failure::usage(format!(
                "`{text}`: {count} devices, the limit is {MAX_DEVICES}"
            )));
        }
        Ok(DeviceSelector::Emulated {
            model: Some(model.to_owned()),
            count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors() {
        let emulated = |model: Option<&str>, count| DeviceSelector::Emulated {
            model: model.map(str::to_owned),
            count,
        };
        for (text, want) in [
            ("kfd", DeviceSelector::Kfd(None)),
            ("kfd:2", DeviceSelector::Kfd(Some(2))),
            ("emu", emulated(None, 1)),
            ("emu:gfx942", emulated(Some("gfx942"), 1)),
            ("emu:gfx90a:xnack+", emulated(Some("gfx90a:xnack+"), 1)),
            ("emu:mi300x*4", emulated(Some("mi300x"), 4)),
            ("gfx1100", emulated(Some("gfx1100"), 1)),
            ("mi210*2", emulated(Some("mi210"), 2)),
        ] {
            assert_eq!(DeviceSelector::parse(text).unwrap(), want, "{text}");
        }
        for text in [
            "",
            "kfd:",
            "kfd:x",
            "kfd:-1",
            "emu:",
            "emu:*2",
            "mi300x*0",
            "mi300x*",
            "mi300x*65",
        ] {
            assert_eq!(
                DeviceSelector::parse(text).unwrap_err().exit,
                super::super::failure::Exit::Usage,
                "{text}"
            );
        }
    }
}
