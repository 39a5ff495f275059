//! Global wave sync: counters of a GPU at which waves of all workgroups of a dispatch meet.
//!
//! Knows: what its instructions do to a resource. Must not know: waves, encodings, which queue may use it.
//!
//! Sources: AMD "Vega ISA" and "RDNA2" ISA documents, `DS_GWS_INIT` and `DS_GWS_BARRIER`; LLVM's `ds_gws` intrinsics for the
//! resource's number. A wave that arrives while the counter is not 0 takes one off it and waits; the one that finds 0 sets the
//! counter for the next time and lets all go on.
use std::sync::{Mutex, PoisonError};

/// Resources of a GPU.
pub(super) const RESOURCES: u32 = 64;

/// What a wave does with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GlobalSyncAct {
    /// It sets the counter.
    Init,
    /// It meets the others.
    Barrier,
}

impl GlobalSyncAct {
    /// The instruction that asks for it.
    pub(super) const fn mnemonic(self) -> &'static str {
        match self {
            Self::Init => "ds_gws_init",
            Self::Barrier => "ds_gws_barrier",
        }
    }
}

/// A wave's place among those that wait: the resource, and how often that had let waves go when this one arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticket {
    resource: u32,
    passed: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Resource {
    counter: u32,
    /// How often waves were let go.
    passed: u64,
}

/// The resources of one GPU.
#[derive(Debug)]
pub(super) struct GlobalSync {
    resources: [Mutex<Resource>; RESOURCES as usize],
}

impl Default for GlobalSync {
    fn default() -> Self {
        Self {
            resources: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl GlobalSync {
    /// Does what a wave asks of a resource; gives its place where it has to wait.
    pub(super) fn act(&self, act: GlobalSyncAct, resource: u32, value: u32) -> Option<Ticket> {
        let resource = resource % RESOURCES;
        let mut of = self.of(resource);
        match act {
            GlobalSyncAct::Init => {
                of.counter = value;
                None
            }
            GlobalSyncAct::Barrier if of.counter == 0 => {
                of.counter = value;
                of.passed += 1;
                None
            }
            GlobalSyncAct::Barrier => {
                of.counter -= 1;
                Some(Ticket {
                    resource,
                    passed: of.passed,
                })
            }
        }
    }

    /// Whether the wave that waits there may go on.
    pub(super) fn is_passed(&self, ticket: Ticket) -> bool {
        self.of(ticket.resource).passed != ticket.passed
    }

    fn of(&self, resource: u32) -> std::sync::MutexGuard<'_, Resource> {
        // Never out of range: tickets are made in `act`.
        let index = (resource % RESOURCES) as usize;
        self.resources[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_to_arrive_lets_all_go_and_sets_the_next_counter() {
        let sync = GlobalSync::default();
        assert_eq!(sync.act(GlobalSyncAct::Init, 64 + 3, 2), None);
        for _ in 0..3 {
            let first = sync.act(GlobalSyncAct::Barrier, 3, 2).unwrap();
            let second = sync.act(GlobalSyncAct::Barrier, 3, 2).unwrap();
            assert!(!sync.is_passed(first) && !sync.is_passed(second));
            // another resource is none of its business
            assert_eq!(sync.act(GlobalSyncAct::Barrier, 4, 0), None);
            assert!(!sync.is_passed(first));
            assert_eq!(sync.act(GlobalSyncAct::Barrier, 3, 2), None);
            assert!(sync.is_passed(first) && sync.is_passed(second));
        }
    }
}
