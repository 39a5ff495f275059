//! The PCI Express link of a GPU, from the PCI device's files below its render node.
//!
//! Knows: what the kernel prints there (`drivers/pci/pci-sysfs.c`). Must not know: KFD's topology, who shows it.
use std::path::PathBuf;

use crate::runtime::driver::{PcieLink, PcieSpeed};

/// The PCI device of a render node.
pub(super) fn device(render_minor: u32) -> PathBuf {
    PathBuf::from(format!("/sys/dev/char/226:{render_minor}/device"))
}

/// Reads the link by `file`, which gives the text of one of the device's files; `None` where it says nothing.
pub(super) fn link(file: impl Fn(&str) -> Option<String>) -> Option<PcieLink> {
    let of = |what: &str| PcieSpeed {
        mega_transfers_per_s: file(&format!("{what}_link_speed")).and_then(|text| speed(&text)),
        lanes: file(&format!("{what}_link_width")).and_then(|text| width(&text)),
    };
    let link = PcieLink {
        current: of("current"),
        max: of("max"),
    };
    (link != PcieLink::default()).then_some(link)
}

/// `16.0 GT/s PCIe`, before Linux 5.7 `16 GT/s`; what the kernel does not know is `Unknown` or `Unknown speed`.
fn speed(text: &str) -> Option<u32> {
    let number: f64 = text.trim().split_once(" GT/s")?.0.parse().ok()?;
    let mega = (number * 1000.0).round();
    (mega > 0.0 && mega < f64::from(u32::MAX)).then_some(mega as u32)
}

/// A number of lanes: 0 is no link, 255 one that cannot be read.
fn width(text: &str) -> Option<u32> {
    let lanes = text.trim().parse().ok()?;
    (1..=32).contains(&lanes).then_some(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Option<PcieLink> {
        link(|name| {
            let found = files.iter().find(|(file, _)| *file == name);
            found.map(|(_, text)| (*text).to_owned())
        })
    }

    fn at(mega_transfers_per_s: u32, lanes: u32) -> PcieSpeed {
        PcieSpeed {
            mega_transfers_per_s: Some(mega_transfers_per_s),
            lanes: Some(lanes),
        }
    }

    #[test]
    fn case_80_current_and_highest_speed() {
        let link = of(&[
            ("current_link_speed", "2.5 GT/s PCIe\n"),
            ("current_link_width", "8\n"),
            ("max_link_speed", "16.0 GT/s PCIe\n"),
            ("max_link_width", "16\n"),
        ])
        .unwrap();
        assert_eq!((link.current, link.max), (at(2500, 8), at(16_000, 16)));
        assert!(link.is_slower_than_it_may_be());
        assert_eq!(link.current.to_string(), "2.5 GT/s x8");
        assert_eq!(link.max.to_string(), "16 GT/s x16");
    }

    #[test]
    fn case_80_what_is_not_known_is_no_number() {
        let link = of(&[
            ("current_link_speed", "Unknown\n"),
            ("current_link_width", "0\n"),
            ("max_link_speed", "8 GT/s\n"),
            ("max_link_width", "255\n"),
        ])
        .unwrap();
        assert_eq!(link.current, PcieSpeed::default());
        assert_eq!(link.max.mega_transfers_per_s, Some(8000));
        assert_eq!(link.max.lanes, None);
        assert!(!link.is_slower_than_it_may_be());
        assert_eq!(link.current.to_string(), "unknown speed");
        assert_eq!(of(&[]), None);
        for odd in [
            "",
            "GT/s",
            "-1 GT/s PCIe",
            "x GT/s",
            "1e30 GT/s",
            "16.0 MT/s",
        ] {
            assert_eq!(speed(odd), None, "{odd}");
        }
    }
}
