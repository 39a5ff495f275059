//! `--grid`, `--blocks` and `--block` turned into a dispatch's geometry.
//!
//! Knows: the options and their defaults. Must not know: limits, which `dispatch` checks.
use crate::cli::failure::{Exit, Failure};
use crate::cli::units::Triple;
use crate::dispatch::{Geometry, GeometryError, KernelRequirements};

/// The workgroup where neither option nor kernel says one.
const DEFAULT_WORKGROUP: u32 = 256;

/// What to try where a geometry is refused.
pub(super) fn hint(error: &GeometryError) -> Option<String> {
    let hint = match error {
        GeometryError::PartialWorkgroup { .. } => {
            "give a grid that is a multiple of the workgroup, or --allow-partial where the code is right for a part of one"
                .to_owned()
        }
        GeometryError::RequiredWorkgroupSize { required, .. } => {
            let [x, y, z] = required;
            format!("give --block {x},{y},{z}, or leave it out")
        }
        GeometryError::Registers { need, .. } => format!(
            "give --block with at most {} work-items, or build with fewer registers (__launch_bounds__)",
            need.lanes * need.waves_that_fit
        ),
        GeometryError::WorkgroupSize { limit, .. } => {
            format!("give --block with at most {limit} work-items")
        }
        GeometryError::GridSize { limit, .. } => format!(
            "launch several grids of at most {limit} work-items, or have each work-item do more than one element"
        ),
        GeometryError::GroupSegment { .. } => {
            "rocr load shows a kernel's static LDS; gfx950 has 160 KiB a workgroup, others 64 KiB".to_owned()
        }
        _ => return None,
    };
    Some(hint)
}

/// Resolves the options; nothing is adjusted, whatever does not agree is refused.
pub(super) fn resolve(
    grid: Option<Triple>,
    blocks: Option<Triple>,
    block: Option<Triple>,
    kernel: &KernelRequirements,
) -> Result<Geometry, Failure> {
    let required = kernel.required_workgroup_size;
    let workgroup: [u64; 3] = match (block, required) {
        (Some(block), _) => block.sizes,
        (None, Some(required)) => required.map(u64::from),
        (None, None) => {
            let limit = kernel.max_flat_workgroup_size.filter(|limit| *limit != 0);
            [
                u64::from(limit.unwrap_or(DEFAULT_WORKGROUP).min(DEFAULT_WORKGROUP)),
                1,
                1,
            ]
        }
    };
    let workgroup_dimensions = block.map_or_else(|| used(workgroup), |block| block.dimensions);
    let asked = grid.or(blocks).ok_or_else(|| {
        Failure::usage("no geometry: how many work-items is not said")
            .hint("give --grid WORK-ITEMS or --blocks WORKGROUPS, such as --grid 4096 --block 256")
    })?;
    let items = |blocks: Triple| -> Result<[u64; 3], Failure> {
        let mut items = [0; 3];
        for (dimension, slot) in items.iter_mut().enumerate() {
            *slot = blocks.sizes[dimension]
                .checked_mul(workgroup[dimension])
                .ok_or_else(|| {
                    too_large(
                        "grid",
                        u128::from(blocks.sizes[dimension]) * u128::from(workgroup[dimension]),
                        dimension,
                    )
                })?;
        }
        Ok(items)
    };
    let sizes = match (grid, blocks) {
        (Some(grid), Some(blocks)) => {
            for dimension in 0..3 {
                let held = grid.sizes[dimension].div_ceil(workgroup[dimension].max(1));
                if held != blocks.sizes[dimension] {
                    return Err(Failure::usage(format!(
                        "--grid and --blocks disagree in dimension {}: {} work-items are {held} workgroups of {}, not {}",
                        ["x", "y", "z"][dimension],
                        grid.sizes[dimension],
                        workgroup[dimension],
                        blocks.sizes[dimension]
                    )));
                }
            }
            grid.sizes
        }
        (Some(grid), None) => grid.sizes,
        (None, _) => items(asked)?,
    };
    let dimensions = [grid, blocks]
        .into_iter()
        .flatten()
        .map(|triple| triple.dimensions)
        .max();
    let dimensions = dimensions.unwrap_or(1).max(workgroup_dimensions);
    let narrow = |what: &'static str, sizes: [u64; 3]| -> Result<[u32; 3], Failure> {
        let mut out = [0; 3];
        for dimension in 0..3 {
            let size = sizes[dimension];
            out[dimension] = u32::try_from(size)
                .map_err(|_too_large| too_large(what, u128::from(size), dimension))?;
        }
        Ok(out)
    };
    Ok(Geometry {
        dimensions,
        grid: narrow("grid", sizes)?,
        workgroup: narrow("workgroup", workgroup)?,
    })
}

/// Dimensions up to the last that is not 1.
fn used(sizes: [u64; 3]) -> u8 {
    if sizes[2] != 1 {
        3
    } else if sizes[1] != 1 {
        2
    } else {
        1
    }
}

fn too_large(what: &str, size: u128, dimension: usize) -> Failure {
    Failure::new(
        Exit::Refused,
        "geometry",
        format!(
            "the {what} is {size} in dimension {}; an AQL packet holds at most {}",
            ["x", "y", "z"][dimension],
            u32::MAX
        ),
    )
    .status(crate::loader::status::HsaStatus::ERROR_INCOMPATIBLE_ARGUMENTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::units::parse_triple;

    fn resolve_text(
        grid: &str,
        blocks: &str,
        block: &str,
        kernel: KernelRequirements,
    ) -> Result<Geometry, Failure> {
        let triple = |text: &str| {
            if text.is_empty() {
                None
            } else {
                Some(parse_triple(text).unwrap())
            }
        };
        resolve(triple(grid), triple(blocks), triple(block), &kernel)
    }

    fn geometry(dimensions: u8, grid: [u32; 3], workgroup: [u32; 3]) -> Geometry {
        Geometry {
            dimensions,
            grid,
            workgroup,
        }
    }

    #[test]
    fn grid_counts_work_items_and_blocks_count_workgroups() {
        let none = KernelRequirements::default();
        let want = geometry(1, [256, 1, 1], [64, 1, 1]);
        assert_eq!(resolve_text("256", "", "64", none).unwrap(), want);
        assert_eq!(resolve_text("", "4", "64", none).unwrap(), want);
        assert_eq!(resolve_text("256", "4", "64", none).unwrap(), want);
        // 250 work-items also need 4 workgroups of 64
        assert_eq!(
            resolve_text("250", "4", "64", none).unwrap().grid,
            [250, 1, 1]
        );
        let failure = resolve_text("256", "5", "64", none).unwrap_err();
        assert!(
            failure.exit == Exit::Usage
                && failure
                    .message
                    .contains("256 work-items are 4 workgroups of 64, not 5")
        );
        assert_eq!(
            resolve_text("", "", "64", none).unwrap_err().exit,
            Exit::Usage
        );
    }

    #[test]
    fn the_workgroup_comes_from_option_kernel_or_default() {
        let none = KernelRequirements::default();
        let with = |required, max| KernelRequirements {
            required_workgroup_size: required,
            max_flat_workgroup_size: max,
            ..none
        };
        let workgroup =
            |block: &str, kernel| resolve_text("1024", "", block, kernel).unwrap().workgroup;
        assert_eq!(workgroup("", none), [256, 1, 1]);
        assert_eq!(workgroup("", with(None, Some(1024))), [256, 1, 1]);
        assert_eq!(workgroup("", with(None, Some(193))), [193, 1, 1]);
        assert_eq!(workgroup("", with(Some([16, 4, 1]), Some(64))), [16, 4, 1]);
        // not adjusted: the check refuses it later
        assert_eq!(
            workgroup("512", with(Some([64, 1, 1]), Some(64))),
            [512, 1, 1]
        );
    }

    #[test]
    fn dimensions_are_the_larger_of_grid_and_block() {
        let none = KernelRequirements::default();
        assert_eq!(
            resolve_text("64", "", "4,4", none).unwrap(),
            geometry(2, [64, 1, 1], [4, 4, 1])
        );
        assert_eq!(
            resolve_text("64,2,1", "", "64", none).unwrap(),
            geometry(3, [64, 2, 1], [64, 1, 1])
        );
        let required = KernelRequirements {
            required_workgroup_size: Some([8, 8, 1]),
            ..none
        };
        assert_eq!(
            resolve_text("64,64", "", "", required).unwrap().dimensions,
            2
        );
    }

    #[test]
    fn sizes_beyond_the_packet_are_refused_with_the_product() {
        let none = KernelRequirements::default();
        let failure = resolve_text("", "16777216", "256", none).unwrap_err();
        assert!(
            failure.exit == Exit::Refused && failure.message.contains("4294967296"),
            "{failure}"
        );
        assert_eq!(
            resolve_text("4G", "", "256", none).unwrap_err().exit,
            Exit::Refused
        );
        assert_eq!(
            resolve_text("", "0xffffffffffffffff", "256", none)
                .unwrap_err()
                .exit,
            Exit::Refused
        );
        assert_eq!(resolve_text("0", "", "256", none).unwrap().grid, [0, 1, 1]);
    }
}
