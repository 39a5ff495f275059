//! Launch geometry: how many work-items in how many workgroups, and which of it a kernel and an agent allow.
//!
//! Knows: sizes, limits and where each limit comes from. Must not know: command-line defaults, queues. Follows HSA PSAS
//! 1.2, "Kernel dispatch packet", and AMDGPUUsage, "Code Object V3 to V6 Metadata".
use crate::loader::HsaStatus;

/// Grid and workgroup of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// 1 to 3.
    pub dimensions: u8,
    /// Grid in work-items; unused dimensions are 1.
    pub grid: [u32; 3],
    /// Workgroup in work-items; unused dimensions are 1.
    pub workgroup: [u32; 3],
}

/// What a kernel was compiled for, from its metadata and descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelRequirements {
    /// `.reqd_workgroup_size`.
    pub required_workgroup_size: Option<[u32; 3]>,
    /// `.max_flat_workgroup_size`.
    pub max_flat_workgroup_size: Option<u32>,
    /// `.uniform_work_group_size` is 1: the last workgroup of each dimension must be whole.
    pub uniform_workgroup_size: bool,
    /// `.max_num_workgroups_{x,y,z}`.
    pub max_workgroups: Option<[u32; 3]>,
    /// `.group_segment_fixed_size`: static LDS bytes.
    pub group_segment_fixed_bytes: u32,
    /// `.private_segment_fixed_size`: scratch bytes of a work-item.
    pub private_segment_fixed_bytes: u32,
    /// Vector registers, by the descriptor.
    pub registers: Option<RegisterNeed>,
}

/// What a workgroup's waves need of the register files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterNeed {
    /// Work-items of a wave.
    pub lanes: u32,
    /// Vector registers that a wave takes, accumulation registers of a unified file included.
    pub vgprs: u32,
    /// Waves of so many registers that fit where a workgroup runs.
    pub waves_that_fit: u32,
}

/// What an agent allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchLimits {
    /// HSA_AGENT_INFO_WORKGROUP_MAX_SIZE.
    pub workgroup_max_size: u32,
    /// HSA_AGENT_INFO_WORKGROUP_MAX_DIM.
    pub workgroup_max_dim: [u32; 3],
    /// HSA_AGENT_INFO_GRID_MAX_DIM.
    pub grid_max_dim: [u32; 3],
    /// HSA_AGENT_INFO_GRID_MAX_SIZE: work-items of all dimensions together.
    pub grid_max_size: u32,
    /// LDS bytes of a workgroup.
    pub group_segment_max_bytes: u32,
    /// Scratch bytes of a work-item.
    pub private_segment_max_bytes: u32,
}

/// Why a launch is refused before it reaches the queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// Not 1 to 3 dimensions.
    #[error("a dispatch has 1 to 3 dimensions, not {dimensions}")]
    Dimensions {
        /// As given.
        dimensions: u8,
    },
    /// A size of 0.
    #[error("the {what} is 0 in dimension {}", ["x", "y", "z"][*dimension])]
    Zero {
        /// `grid` or `workgroup`.
        what: &'static str,
        /// Index of the dimension.
        dimension: usize,
    },
    /// More than one work-item in a dimension that the dispatch does not have.
    #[error("the {what} is {size} in dimension {}, but the dispatch has {dimensions}", ["x", "y", "z"][*dimension])]
    UnusedDimension {
        /// `grid` or `workgroup`.
        what: &'static str,
        /// Index of the dimension.
        dimension: usize,
        /// As given.
        size: u32,
        /// Dimensions of the dispatch.
        dimensions: u8,
    },
    /// A grid dimension beyond the agent's.
    #[error("the grid is {size} in dimension {}; the agent allows {limit}", ["x", "y", "z"][*dimension])]
    GridDimension {
        /// Index of the dimension.
        dimension: usize,
        /// As given.
        size: u32,
        /// The agent's limit.
        limit: u32,
    },
    /// More work-items in all than the agent's grids have.
    #[error(
        "a grid of {} x {} x {} is {} work-items; the agent allows {limit} in all (HSA_AGENT_INFO_GRID_MAX_SIZE)",
        grid[0], grid[1], grid[2], items(grid)
    )]
    GridSize {
        /// As given.
        grid: [u32; 3],
        /// The agent's limit.
        limit: u32,
    },
    /// A workgroup dimension beyond the agent's.
    #[error("the workgroup is {size} in dimension {}; the agent allows {limit}", ["x", "y", "z"][*dimension])]
    WorkgroupDimension {
        /// Index of the dimension.
        dimension: usize,
        /// As given.
        size: u32,
        /// The agent's limit.
        limit: u32,
    },
    /// A workgroup of too many work-items.
    #[error("a workgroup of {size} work-items; {origin} allows {limit}")]
    WorkgroupSize {
        /// Work-items.
        size: u64,
        /// The limit.
        limit: u32,
        /// Where the limit comes from.
        origin: &'static str,
    },
    /// Unlike the size that the kernel was compiled for.
    #[error(
        "a workgroup of {given:?}; the kernel was compiled for {required:?} only (.reqd_workgroup_size)"
    )]
    RequiredWorkgroupSize {
        /// As given.
        given: [u32; 3],
        /// The kernel's.
        required: [u32; 3],
    },
    /// A partial workgroup where the kernel forbids it.
    #[error(
        "a grid of {grid} is no multiple of the workgroup's {workgroup} in dimension {}, and the kernel was compiled \
         for whole workgroups only (.uniform_work_group_size)",
        ["x", "y", "z"][*dimension]
    )]
    PartialWorkgroup {
        /// Index of the dimension.
        dimension: usize,
        /// Work-items of the grid.
        grid: u32,
        /// Work-items of the workgroup.
        workgroup: u32,
    },
    /// More workgroups than the kernel was compiled for.
    #[error(
        "{count} workgroups in dimension {}; the kernel was compiled for at most {limit} (.max_num_workgroups)",
        ["x", "y", "z"][*dimension]
    )]
    Workgroups {
        /// Index of the dimension.
        dimension: usize,
        /// Workgroups.
        count: u32,
        /// The kernel's limit.
        limit: u32,
    },
    /// Too much LDS.
    #[error(
        "{fixed_bytes} bytes of static and {dynamic_bytes} bytes of dynamic LDS; a workgroup has {limit_bytes} bytes on \
         this agent"
    )]
    GroupSegment {
        /// Static part.
        fixed_bytes: u32,
        /// Dynamic part.
        dynamic_bytes: u32,
        /// The agent's limit.
        limit_bytes: u32,
    },
    /// More waves than the vector registers hold.
    #[error(
        "a workgroup of {size} work-items is {waves} waves of {} VGPRs each; the register files hold {} of them, so at \
         most {} work-items",
        need.vgprs, need.waves_that_fit, need.waves_that_fit * need.lanes
    )]
    Registers {
        /// Work-items.
        size: u64,
        /// Waves that they make.
        waves: u64,
        /// What each needs.
        need: RegisterNeed,
    },
    /// Too much scratch.
    #[error("{bytes} bytes of scratch a work-item; the agent allows {limit_bytes}")]
    PrivateSegment {
        /// Bytes asked for.
        bytes: u32,
        /// The agent's limit.
        limit_bytes: u32,
    },
}

impl GeometryError {
    /// The status that ROCr gives where a queue finds the same.
    #[must_use]
    pub fn status(&self) -> HsaStatus {
        match self {
            Self::Dimensions { .. }
            | Self::Zero { .. }
            | Self::UnusedDimension { .. }
            | Self::GridDimension { .. }
            | Self::GridSize { .. }
            | Self::Workgroups { .. }
            | Self::PartialWorkgroup { .. } => HsaStatus::ERROR_INCOMPATIBLE_ARGUMENTS,
            Self::WorkgroupDimension { .. }
            | Self::WorkgroupSize { .. }
            | Self::RequiredWorkgroupSize { .. } => HsaStatus::ERROR_INVALID_ARGUMENT,
            Self::GroupSegment { .. } => HsaStatus::ERROR_INVALID_ALLOCATION,
            Self::Registers { .. } => HsaStatus::ERROR_INVALID_ISA,
            Self::PrivateSegment { .. } => HsaStatus::ERROR_OUT_OF_RESOURCES,
        }
    }
}

/// Work-items of a grid; three factors of 32 bits do not fit into 64.
fn items(grid: &[u32; 3]) -> u128 {
    grid.iter().map(|&size| u128::from(size)).product()
}

impl Geometry {
    /// A one-dimensional launch.
    #[must_use]
    pub const fn linear(grid: u32, workgroup: u32) -> Self {
        Self {
            dimensions: 1,
            grid: [grid, 1, 1],
            workgroup: [workgroup, 1, 1],
        }
    }

    /// A launch of as many dimensions as the longer of the two lists; missing ones are 1.
    ///
    /// # Errors
    /// When a list is empty or longer than 3.
    pub fn new(grid: &[u32], workgroup: &[u32]) -> Result<Self, GeometryError> {
        let dimensions = grid.len().max(workgroup.len());
        if grid.is_empty() || workgroup.is_empty() || dimensions > 3 {
            let dimensions =
                u8::try_from(if dimensions > 3 { dimensions } else { 0 }).unwrap_or(u8::MAX);
            return Err(GeometryError::Dimensions { dimensions });
        }
        let triple = |sizes: &[u32]| std::array::from_fn(|i| sizes.get(i).copied().unwrap_or(1));
        Ok(Self {
            dimensions: dimensions as u8,
            grid: triple(grid),
            workgroup: triple(workgroup),
        })
    }

    /// Work-items of a whole workgroup.
    #[must_use]
    pub fn workgroup_items(&self) -> u64 {
        self.workgroup.iter().map(|&size| u64::from(size)).product()
    }

    /// Work-items of the grid; saturates.
    #[must_use]
    pub fn grid_items(&self) -> u64 {
        self.grid
            .iter()
            .fold(1, |items, &size| u64::from(size).saturating_mul(items))
    }

    /// Workgroups in each dimension, a partial last one counted.
    #[must_use]
    pub fn workgroups(&self) -> [u32; 3] {
        std::array::from_fn(|i| self.grid[i].div_ceil(self.workgroup[i].max(1)))
    }

    /// Checks everything that can be known before the packet is written. `dynamic_lds` is in bytes, `private` the
    /// scratch bytes of a work-item.
    ///
    /// # Errors
    /// The first limit that is broken, named with its origin.
    pub fn check(
        &self,
        kernel: &KernelRequirements,
        limits: &LaunchLimits,
        dynamic_lds: u32,
        private: u32,
    ) -> Result<(), GeometryError> {
        self.check_shape(limits)?;
        let size = self.workgroup_items();
        if let Some(required) = kernel.required_workgroup_size
            && required != self.workgroup
        {
            return Err(GeometryError::RequiredWorkgroupSize {
                given: self.workgroup,
                required,
            });
        }
        let kernel_limit = kernel.max_flat_workgroup_size.unwrap_or(u32::MAX);
        for (limit, origin) in [
            (limits.workgroup_max_size, "the agent"),
            (kernel_limit, "the kernel (.max_flat_workgroup_size)"),
        ] {
            if size > u64::from(limit) {
                return Err(GeometryError::WorkgroupSize {
                    size,
                    limit,
                    origin,
                });
            }
        }
        for dimension in 0..3 {
            let (grid, workgroup) = (self.grid[dimension], self.workgroup[dimension]);
            if kernel.uniform_workgroup_size && !grid.is_multiple_of(workgroup) {
                return Err(GeometryError::PartialWorkgroup {
                    dimension,
                    grid,
                    workgroup,
                });
            }
            let count = grid.div_ceil(workgroup);
            if let Some(limit) = kernel.max_workgroups.map(|limit| limit[dimension])
                && limit != 0
                && count > limit
            {
                return Err(GeometryError::Workgroups {
                    dimension,
                    count,
                    limit,
                });
            }
        }
        let fixed_bytes = kernel.group_segment_fixed_bytes;
        if u64::from(fixed_bytes) + u64::from(dynamic_lds)
            > u64::from(limits.group_segment_max_bytes)
        {
            return Err(GeometryError::GroupSegment {
                fixed_bytes,
                dynamic_bytes: dynamic_lds,
                limit_bytes: limits.group_segment_max_bytes,
            });
        }
        if let Some(need) = kernel.registers {
            let waves = size.div_ceil(need.lanes.max(1).into());
            if waves > need.waves_that_fit.into() {
                return Err(GeometryError::Registers { size, waves, need });
            }
        }
        if private > limits.private_segment_max_bytes {
            return Err(GeometryError::PrivateSegment {
                bytes: private,
                limit_bytes: limits.private_segment_max_bytes,
            });
        }
        Ok(())
    }

    fn check_shape(&self, limits: &LaunchLimits) -> Result<(), GeometryError> {
        let dimensions = self.dimensions;
        if !(1..=3).contains(&dimensions) {
            return Err(GeometryError::Dimensions { dimensions });
        }
        for dimension in 0..3 {
            for (what, size) in [
                ("grid", self.grid[dimension]),
                ("workgroup", self.workgroup[dimension]),
            ] {
                if size == 0 {
                    return Err(GeometryError::Zero { what, dimension });
                }
                if size > 1 && dimension >= usize::from(dimensions) {
                    return Err(GeometryError::UnusedDimension {
                        what,
                        dimension,
                        size,
                        dimensions,
                    });
                }
            }
            let (size, limit) = (self.grid[dimension], limits.grid_max_dim[dimension]);
            if size > limit {
                return Err(GeometryError::GridDimension {
                    dimension,
                    size,
                    limit,
                });
            }
            // The packet's fields are 16 bits wide whatever the agent says.
            let (size, limit) = (
                self.workgroup[dimension],
                limits.workgroup_max_dim[dimension].min(u32::from(u16::MAX)),
            );
            if size > limit {
                return Err(GeometryError::WorkgroupDimension {
                    dimension,
                    size,
                    limit,
                });
            }
        }
        if items(&self.grid) > u128::from(limits.grid_max_size) {
            return Err(GeometryError::GridSize {
                grid: self.grid,
                limit: limits.grid_max_size,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LaunchLimits = LaunchLimits {
        workgroup_max_size: 1024,
        workgroup_max_dim: [1024; 3],
        grid_max_dim: [u32::MAX; 3],
        grid_max_size: u32::MAX,
        group_segment_max_bytes: 65536,
        private_segment_max_bytes: 1 << 20,
    };

    fn check(
        grid: &[u32],
        workgroup: &[u32],
        kernel: KernelRequirements,
        lds: u32,
    ) -> Result<(), String> {
        Geometry::new(grid, workgroup)
            .and_then(|geometry| geometry.check(&kernel, &LIMITS, lds, 0))
            .map_err(|error| format!("{error} / {:#x}", error.status().0))
    }

    #[test]
    fn good_geometry_passes_and_counts_partial_workgroups() {
        let kernel = KernelRequirements::default();
        assert_eq!(check(&[1000, 3], &[256], kernel, 65536), Ok(()));
        let geometry = Geometry::new(&[1000, 3], &[256, 2]).unwrap();
        assert_eq!(geometry.workgroups(), [4, 2, 1]);
        assert_eq!(
            (geometry.workgroup_items(), geometry.grid_items()),
            (512, 3000)
        );
        assert_eq!(geometry.dimensions, 2);
        // the largest grids there are, in one dimension and in three
        assert_eq!(check(&[u32::MAX], &[256], kernel, 0), Ok(()));
        assert_eq!(check(&[1 << 16, 1 << 15, 1], &[256], kernel, 0), Ok(()));
    }

    /// Waves of 136 VGPRs: three on a SIMD of 512, twelve on four.
    #[test]
    fn registers_limit_a_workgroup() {
        let kernel = KernelRequirements {
            registers: Some(RegisterNeed {
                lanes: 64,
                vgprs: 136,
                waves_that_fit: 12,
            }),
            ..KernelRequirements::default()
        };
        assert_eq!(check(&[4096], &[768], kernel, 0), Ok(()));
        assert_eq!(
            check(&[4096], &[1024], kernel, 0).unwrap_err(),
            "a workgroup of 1024 work-items is 16 waves of 136 VGPRs each; the register files hold 12 of them, so at most \
             768 work-items / 0x100f"
        );
    }

    #[test]
    fn each_limit_is_named_with_its_origin_and_status() {
        let none = KernelRequirements::default();
        for (grid, workgroup, kernel, lds, wanted) in [
            (
                &[0, 1][..],
                &[1][..],
                none,
                0,
                "the grid is 0 in dimension x / 0x100d",
            ),
            (
                &[4, 1],
                &[1, 0],
                none,
                0,
                "the workgroup is 0 in dimension y / 0x100d",
            ),
            (
                &[65536, 65536, 65536],
                &[256],
                none,
                0,
                "a grid of 65536 x 65536 x 65536 is 281474976710656 work-items; the agent allows 4294967295 in all \
                 (HSA_AGENT_INFO_GRID_MAX_SIZE) / 0x100d",
            ),
            (
                &[4],
                &[2048],
                none,
                0,
                "the workgroup is 2048 in dimension x; the agent allows 1024 / 0x1001",
            ),
            (
                &[4],
                &[64, 32],
                none,
                0,
                "a workgroup of 2048 work-items; the agent allows 1024 / 0x1001",
            ),
            (
                &[4],
                &[512],
                KernelRequirements {
                    max_flat_workgroup_size: Some(256),
                    ..none
                },
                0,
                "a workgroup of 512 work-items; the kernel (.max_flat_workgroup_size) allows 256 / 0x1001",
            ),
            (
                &[4],
                &[64],
                KernelRequirements {
                    required_workgroup_size: Some([32, 2, 1]),
                    ..none
                },
                0,
                "a workgroup of [64, 1, 1]; the kernel was compiled for [32, 2, 1] only (.reqd_workgroup_size) / 0x1001",
            ),
            (
                &[100],
                &[64],
                KernelRequirements {
                    uniform_workgroup_size: true,
                    ..none
                },
                0,
                "a grid of 100 is no multiple of the workgroup's 64 in dimension x, and the kernel was compiled for \
                 whole workgroups only (.uniform_work_group_size) / 0x100d",
            ),
            (
                &[640],
                &[64],
                KernelRequirements {
                    max_workgroups: Some([9, 0, 0]),
                    ..none
                },
                0,
                "10 workgroups in dimension x; the kernel was compiled for at most 9 (.max_num_workgroups) / 0x100d",
            ),
            (
                &[64],
                &[64],
                KernelRequirements {
                    group_segment_fixed_bytes: 65000,
                    ..none
                },
                600,
                "65000 bytes of static and 600 bytes of dynamic LDS; a workgroup has 65536 bytes on this agent / 0x1003",
            ),
            (
                &[1, 1, 1, 1],
                &[1],
                none,
                0,
                "a dispatch has 1 to 3 dimensions, not 4 / 0x100d",
            ),
        ] {
            assert_eq!(check(grid, workgroup, kernel, lds), Err(wanted.to_owned()));
        }
        let odd = Geometry {
            dimensions: 1,
            grid: [1, 2, 1],
            workgroup: [1; 3],
        };
        assert!(matches!(
            odd.check(&none, &LIMITS, 0, 0),
            Err(GeometryError::UnusedDimension {
                dimension: 1,
                size: 2,
                ..
            })
        ));
        assert_eq!(
            Geometry::linear(1, 1)
                .check(&none, &LIMITS, 0, 2 << 20)
                .unwrap_err()
                .status(),
            HsaStatus::ERROR_OUT_OF_RESOURCES
        );
    }
}
