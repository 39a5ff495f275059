//! Cache policies: GLC, SLC, DLC and SCC; SC0, SC1 and NT of gfx940; temporal hints and scopes of RDNA4.
use std::fmt::Write as _;

use super::super::family::Generation;
use super::super::row::Encoding;
use super::operands::Printer;

/// What a temporal hint is for; the hints' numbers mean different things.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Load,
    Store,
    Atomic,
}

fn access(mnemonic: &str) -> Access {
    if mnemonic.contains("atomic") {
        Access::Atomic
    } else if mnemonic.contains("store") || mnemonic.starts_with("tensor_s") {
        Access::Store
    } else {
        Access::Load
    }
}

impl Printer<'_> {
    /// The policy as the generation spells it.
    pub(super) fn cache_policy(&mut self, cpol: u8) {
        if self.family.generation() == Generation::Gfx12 {
            return self.temporal_hint(cpol);
        }
        let sc = self.family.has_sc_bits() && self.inst.row.encoding != Encoding::Smem;
        let names = if sc {
            [(1, " sc0"), (2, " nt"), (4, ""), (16, " sc1")]
        } else {
            [(1, " glc"), (2, " slc"), (4, " dlc"), (16, " scc")]
        };
        for (bit, name) in names {
            if cpol & bit != 0 {
                self.text.push_str(name);
            }
        }
    }

    /// ` scale_offset th:… scope:… nv` (RDNA4 ISA, "Memory scopes and temporal hints").
    fn temporal_hint(&mut self, cpol: u8) {
        let (hint, scope) = (cpol & 7, cpol >> 3 & 3);
        if cpol & 1 << 6 != 0 {
            self.text.push_str(" scale_offset");
        }
        let system = scope == 3;
        match access(self.inst.row.mnemonic) {
            _ if hint == 0 => {}
            Access::Atomic if hint & 4 != 0 && scope < 2 => {
                write!(self.text, " th:TH_ATOMIC_{hint:#x}").ok();
            }
            Access::Atomic => self.text.push_str(match hint {
                1 => " th:TH_ATOMIC_RETURN",
                2 => " th:TH_ATOMIC_NT",
                3 => " th:TH_ATOMIC_NT_RETURN",
                4 | 5 => " th:TH_ATOMIC_CASCADE_RT",
                _ => " th:TH_ATOMIC_CASCADE_NT",
            }),
            Access::Load if hint == 7 => self.text.push_str(" th:0x7"),
            access => {
                self.text.push_str(match access {
                    Access::Store => " th:TH_STORE_",
                    _ => " th:TH_LOAD_",
                });
                self.text.push_str(match (hint, access) {
                    (1, _) => "NT",
                    (2, _) => "HT",
                    (3, _) if system => "BYPASS",
                    (3, Access::Store) => "WB",
                    (3, _) => "LU",
                    (4, _) => "NT_RT",
                    (5, _) => "RT_NT",
                    (6, _) => "NT_HT",
                    _ => "NT_WB",
                });
            }
        }
        self.text.push_str(match scope {
            0 => "",
            1 => " scope:SCOPE_SE",
            2 => " scope:SCOPE_DEV",
            _ => " scope:SCOPE_SYS",
        });
        if cpol & 1 << 5 != 0 {
            self.text.push_str(" nv");
        }
    }
}
