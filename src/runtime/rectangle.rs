//! SDMA's packets for boxes of bytes between two images with rows and slices of their own.
//!
//! Knows: the fields of `COPY` with rectangles, before GFX12 and from it on (sdma_registers.h of ROCr). Must not know: rings,
//! signals, what the bytes are.
//!
//! The engine counts in elements of 1 to 16 bytes; the largest that divides all numbers makes the longest rows fit. A box that
//! is larger than a packet's fields is cut along all three directions.
use super::error::RuntimeError;
use crate::loader::DeviceAddr;

/// `COPY` with sub-operation 4.
const COPY_RECTANGLE: u32 = 1 | 4 << 8;
/// Largest element, as a power of two.
const LARGEST_ELEMENT: u32 = 4;

/// One end of a copy of a box: where its first byte is, and how its rows and slices follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Address of the box's first byte.
    pub address: DeviceAddr,
    /// Bytes from one row to the next.
    pub row: u64,
    /// Bytes from one slice to the next.
    pub slice: u64,
}

/// Bits of the fields that differ between generations.
#[derive(Clone, Copy, Debug)]
struct Fields {
    /// Sizes in a plane.
    plane: u32,
    depth: u32,
    row: u32,
    /// Where the distance of rows begins.
    row_at: u32,
    slice: u32,
}

const BEFORE_GFX12: Fields = Fields {
    plane: 14,
    depth: 11,
    row: 19,
    row_at: 13,
    slice: 28,
};
const GFX12: Fields = Fields {
    plane: 16,
    depth: 14,
    row: 16,
    row_at: 16,
    slice: 32,
};

/// The packets that copy `size` (bytes of a row, rows, slices).
pub(super) fn packets(
    gfx12: bool,
    to: Image,
    from: Image,
    size: [u64; 3],
) -> Result<Vec<Vec<u32>>, RuntimeError> {
    let fields = if gfx12 { GFX12 } else { BEFORE_GFX12 };
    if size.contains(&0) {
        return Ok(Vec::new());
    }
    let [width, height, depth] = size;
    // Of one row or slice nobody reads the distance.
    let row = |image: Image| {
        if height * depth == 1 {
            width
        } else {
            image.row
        }
    };
    let slice = |image: Image| if depth == 1 { row(image) } else { image.slice };
    let all = [from, to].iter().fold(width, |all, &image| {
        all | image.address.get() | row(image) | slice(image)
    });
    let shift = all.trailing_zeros().min(LARGEST_ELEMENT);
    for image in [from, to] {
        for (what, bytes, bits) in [
            ("rows", row(image), fields.row),
            ("slices", slice(image), fields.slice),
        ] {
            let elements = bytes >> shift;
            if elements == 0 || elements > 1 << bits {
                return Err(RuntimeError::Rectangle {
                    what,
                    bytes,
                    most: 1u64 << bits << shift,
                });
            }
        }
    }
    let image = |image: Image, [x, y, z]: [u64; 3]| {
        let at = x + y * row(image) + z * slice(image);
        let address = image.address.get().wrapping_add(at);
        let row = ((row(image) >> shift) - 1) as u32;
        let slice = ((slice(image) >> shift) - 1) as u32;
        let low = address as u32;
        // The place inside the image is part of the address already.
        [low, (address >> 32) as u32, 0, row << fields.row_at, slice]
    };
    let (plane, deep) = (1u64 << fields.plane, 1u64 << fields.depth);
    let step = |of: u64| usize::try_from(of).unwrap_or(usize::MAX);
    let mut packets = Vec::new();
    for z in (0..depth).step_by(step(deep)) {
        for y in (0..height).step_by(step(plane)) {
            for x in (0..width).step_by(step(plane << shift)) {
                let mut packet = vec![COPY_RECTANGLE | shift << 29];
                packet.extend(image(from, [x, y, z]));
                packet.extend(image(to, [x, y, z]));
                let columns = ((width - x).min(plane << shift) >> shift) - 1;
                let rows = (height - y).min(plane) - 1;
                packet.push(columns as u32 | (rows as u32) << 16);
                packet.push(((depth - z).min(deep) - 1) as u32);
                packets.push(packet);
            }
        }
    }
    Ok(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(address: u64, row: u64, slice: u64) -> Image {
        Image {
            address: DeviceAddr(address),
            row,
            slice,
        }
    }

    #[test]
    fn fields_lie_where_each_generation_has_them() {
        let (from, to) = (
            image(0x1_0000_1000, 256, 4096),
            image(0x2_0000_2000, 512, 8192),
        );
        let old = packets(false, to, from, [64, 3, 2]).unwrap();
        // Elements of 16 bytes: rows of 16 and 32 of them, slices of 256 and 512.
        let head = [0x8000_0401, 0x1000, 1, 0];
        let expected = [15 << 13, 255, 0x2000, 2, 0, 31 << 13, 511, 3 | 2 << 16, 1];
        assert_eq!(old, [[head.as_slice(), expected.as_slice()].concat()]);
        let new = packets(true, to, from, [64, 3, 2]).unwrap();
        let expected = [15 << 16, 255, 0x2000, 2, 0, 31 << 16, 511, 3 | 2 << 16, 1];
        assert_eq!(new, [[head.as_slice(), expected.as_slice()].concat()]);
    }

    #[test]
    fn boxes_are_cut_where_fields_end_and_distances_must_fit() {
        let wide = image(0x1000, 1 << 16, 1 << 33);
        let old = packets(false, wide, wide, [1 + (1 << 14), 1, 1]).unwrap();
        assert_eq!(old.len(), 2);
        assert_eq!(
            (old[0][11], old[1][11], old[1][1]),
            (0x3fff, 0, 0x1000 + (1 << 14))
        );
        assert_eq!(
            packets(true, wide, wide, [1 + (1 << 14), 1, 1])
                .unwrap()
                .len(),
            1
        );
        let many = packets(false, wide, wide, [16, (1 << 14) + 1, 1]).unwrap();
        assert_eq!((many.len(), many[1][11]), (2, 0));
        assert!(packets(false, wide, wide, [16, 1, 2]).is_err());
        assert!(packets(true, wide, wide, [16, 1, 2]).is_ok());
        assert!(packets(false, wide, wide, [0, 1, 1]).unwrap().is_empty());
        let none = image(0x1000, 0, 0);
        assert!(packets(true, none, wide, [16, 2, 1]).is_err());
        assert_eq!(packets(true, none, wide, [16, 1, 1]).unwrap().len(), 1);
    }
}
