//! A workgroup's barriers at which arriving and waiting are apart: its own, and named ones that some of its waves share.
//!
//! Knows: where each wave stands with them. Must not know: who has which turn, instructions.
//!
//! Sources: AMD "RDNA4" ISA document, `S_BARRIER_*`; LLVM's "AMDGPU Execution Synchronization". Of clusters and the trap handler
//! there are no barriers: signals do nothing there, and nobody waits.
use super::{Group, Wave};
use crate::runtime::emulated::cu::wave::{BarrierAct, NAMED_BARRIERS, layout};
use crate::runtime::instrument::WaveState;

/// The workgroup's own barrier.
const OWN: i32 = -1;

/// Where a wave stands with its workgroup's barriers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    own: Place,
    named: Place,
    /// The named barrier that it waits for; 0 is none.
    joined: usize,
}

impl Standing {
    /// Whether it waits at one of them.
    pub(super) const fn waits(&self) -> bool {
        self.own.waits || self.named.waits
    }
}

/// Where a wave stands with a barrier.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// It has signalled, and not all others have.
    signalled: bool,
    /// All have, and it has not waited for that yet.
    complete: bool,
    /// It waits.
    waits: bool,
}

impl Place {
    /// Whether the wave may go on at once; else it waits.
    fn wait(&mut self) -> bool {
        let passes = self.complete;
        *self = Self {
            signalled: self.signalled,
            complete: false,
            waits: !passes,
        };
        passes
    }
    /// All have signalled; gives whether it waited for that.
    fn complete(&mut self) -> bool {
        let waited = self.waits;
        *self = Self {
            signalled: false,
            complete: !waited,
            waits: false,
        };
        waited
    }
}

/// A named barrier.
#[derive(Clone, Copy, Debug, Default)]
struct Named {
    valid: bool,
    members: u32,
    signals: u32,
}

/// The named barriers of a workgroup, by number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NamedBarriers {
    barriers: [Named; NAMED_BARRIERS + 1],
    used: bool,
}

impl NamedBarriers {
    /// Makes them those of a new workgroup.
    #[inline]
    pub(super) fn clear(&mut self) {
        if self.used {
            *self = Self::default();
        }
    }

    fn at(&mut self, number: usize) -> &mut Named {
        self.used = true;
        &mut self.barriers[number]
    }
}

/// The state of a barrier as `s_get_barrier_state` gives it.
fn state(valid: bool, members: u32, signals: u32) -> u32 {
    u32::from(valid) | (members & 0x7f) << 4 | (signals & 0x7f) << 16
}

fn lives(wave: &Wave) -> bool {
    wave.state != WaveState::Ended
}

impl Group {
    /// Does what wave `index` asks of barrier `id`; gives whether the wave goes on.
    pub(super) fn at_barrier(&mut self, index: usize, id: i32, act: BarrierAct) -> bool {
        let named = usize::try_from(id)
            .ok()
            .filter(|id| (1..=NAMED_BARRIERS).contains(id));
        match act {
            BarrierAct::Signal { first, members } => {
                let alone = match named {
                    Some(named) => self.signal_named(named, members),
                    None if id == OWN => self.signal_own(index),
                    None => false,
                };
                if first {
                    self.waves[index].set_dword(layout::SCC, u32::from(alone));
                }
            }
            BarrierAct::Wait => {
                let wave = &mut self.waves[index];
                let passes = match id {
                    OWN => wave.standing.own.wait(),
                    0.. if wave.standing.joined != 0 => wave.standing.named.wait(),
                    _ => true,
                };
                if !passes {
                    wave.state = WaveState::Barrier;
                }
                return passes;
            }
            BarrierAct::Init { members } => {
                if let Some(named) = named {
                    *self.named.at(named) = Named {
                        valid: true,
                        members,
                        signals: 0,
                    };
                }
            }
            BarrierAct::Join => {
                let standing = &mut self.waves[index].standing;
                standing.joined = named.unwrap_or(0);
                standing.named = Place::default();
            }
            BarrierAct::Leave => {
                let wave = &mut self.waves[index];
                let left = std::mem::take(&mut wave.standing.joined);
                wave.standing.named = Place::default();
                wave.set_dword(layout::SCC, u32::from(left != 0));
                if left != 0 {
                    let barrier = self.named.at(left);
                    barrier.members = barrier.members.saturating_sub(1);
                    self.complete_named(left);
                }
            }
            BarrierAct::Wake => {
                let waits = |wave: &&mut Wave| {
                    Some(wave.standing.joined) == named && wave.standing.named.waits
                };
                for wave in self.waves[..self.used].iter_mut().filter(waits) {
                    wave.standing.named.waits = false;
                    wave.state = WaveState::Running;
                }
            }
            BarrierAct::State(slot) => {
                let state = match named {
                    Some(named) => {
                        let barrier = self.named.barriers[named];
                        state(barrier.valid, barrier.members, barrier.signals)
                    }
                    None if id == OWN => {
                        let waves = self.waves[..self.used].iter().filter(|wave| lives(wave));
                        let signals = waves.clone().filter(|wave| wave.standing.own.signalled);
                        state(true, waves.clone().count() as u32, signals.count() as u32)
                    }
                    None => 0,
                };
                self.waves[index].set_dword(slot.offset() as u32, state);
            }
        }
        true
    }

    /// A wave signals the workgroup's barrier; gives whether it is the first to.
    fn signal_own(&mut self, index: usize) -> bool {
        self.waves[index].standing.own.signalled = true;
        let signalled = |wave: &&Wave| lives(wave) && wave.standing.own.signalled;
        let alone = self.waves[..self.used].iter().filter(signalled).count() == 1;
        self.complete_own_barrier();
        alone
    }

    /// Completes the workgroup's barrier once all waves that live have signalled.
    pub(super) fn complete_own_barrier(&mut self) {
        let waves = &mut self.waves[..self.used];
        if !waves
            .iter()
            .all(|wave| !lives(wave) || wave.standing.own.signalled)
        {
            return;
        }
        for wave in waves.iter_mut().filter(|wave| lives(wave)) {
            if wave.standing.own.complete() {
                wave.state = WaveState::Running;
            }
        }
    }

    /// A wave signals a named barrier; gives whether it is the first to.
    fn signal_named(&mut self, named: usize, members: u32) -> bool {
        let barrier = self.named.at(named);
        if members != 0 {
            barrier.members = members;
        }
        let alone = barrier.signals == 0;
        barrier.signals += 1;
        self.complete_named(named);
        alone
    }

    /// Completes a named barrier once it has a signal for every wave that takes part.
    fn complete_named(&mut self, named: usize) {
        let barrier = self.named.at(named);
        if barrier.signals == 0 || barrier.signals != barrier.members {
            return;
        }
        barrier.signals = 0;
        let joined = |wave: &&mut Wave| lives(wave) && wave.standing.joined == named;
        for wave in self.waves[..self.used].iter_mut().filter(joined) {
            if wave.standing.named.complete() {
                wave.state = WaveState::Running;
            }
        }
    }
}
