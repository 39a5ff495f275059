//! Arguments filled without being asked for, so that a launch works with geometry alone.
//!
//! Knows: parameters and the number of work-items. Must not know: devices.
use super::bind::{Binding, Bindings, Parameter, ParameterKind, Value, ValueSource};
use super::buffer::Buffer;
use super::scalar::{Scalar, ScalarType};

/// Bytes of an automatic buffer, and of automatic dynamic LDS, for each work-item.
const CELL_BYTES: u64 = 16;

/// Why arguments cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AutoError {
    /// An image, sampler, pipe or queue.
    #[error("argument {name} is a {kind}, which cannot be made automatically")]
    Opaque {
        /// The argument.
        name: String,
        /// Its kind.
        kind: &'static str,
    },
    /// Buffers larger than allowed together.
    #[error(
        "automatic buffers need {need_bytes} bytes, the limit is {limit_bytes} (half of the memory)"
    )]
    Memory {
        /// Bytes needed.
        need_bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
}

/// Fills every parameter: buffers of a cell a work-item, dynamic LDS of a cell a work-item of the group, scalars
/// with the number of work-items, structs with zeros.
pub fn fill(
    parameters: &[Parameter],
    work_items: u64,
    group_size: u64,
    limit_bytes: u64,
) -> Result<Bindings, AutoError> {
    let size_bytes = work_items.saturating_mul(CELL_BYTES);
    let buffers = parameters
        .iter()
        .filter(|parameter| parameter.kind == ParameterKind::Pointer)
        .count() as u64;
    let need_bytes = size_bytes.saturating_mul(buffers);
    if need_bytes > limit_bytes {
        return Err(AutoError::Memory {
            need_bytes,
            limit_bytes,
        });
    }
    let binding = |(index, parameter): (usize, &Parameter)| {
        let value = match parameter.kind {
            ParameterKind::Pointer => Value::Buffer(pattern(
                parameter.pointee,
                size_bytes,
                index as u64,
                work_items,
            )),
            ParameterKind::DynamicLds => Value::Lds(group_size.saturating_mul(CELL_BYTES)),
            ParameterKind::Value => scalar_or_zeros(parameter, work_items),
            ParameterKind::Opaque(kind) => {
                let name = parameter
                    .name
                    .clone()
                    .unwrap_or_else(|| format!("arg{index}"));
                return Err(AutoError::Opaque { name, kind });
            }
        };
        Ok(Binding {
            name: parameter.name.clone(),
            value,
            source: ValueSource::Auto,
        })
    };
    Ok(Bindings {
        list: parameters
            .iter()
            .enumerate()
            .map(binding)
            .collect::<Result<_, _>>()?,
    })
}

fn scalar_or_zeros(parameter: &Parameter, work_items: u64) -> Value {
    let assumed = parameter.ty.is_none();
    let ty = parameter
        .ty
        .or_else(|| ScalarType::integer(parameter.size_bytes, false));
    match ty.filter(|_| !parameter.aggregate) {
        Some(ty) => {
            // A count that a narrow type cannot hold becomes the type's largest value.
            let most = ty.integer_range().map_or(i128::MAX, |(_, high)| high);
            let value = Scalar::from_integer_wrapping(ty, i128::from(work_items).min(most));
            Value::Scalar { value, assumed }
        }
        None => Value::Bytes {
            bytes: vec![0; parameter.size_bytes as usize],
            references: Vec::new(),
        },
    }
}

/// A pattern for a buffer, another one for each argument. Without a type, 32-bit integers.
fn pattern(pointee: Option<ScalarType>, size_bytes: u64, seed: u64, work_items: u64) -> Buffer {
    let ty = pointee.unwrap_or(ScalarType::U32);
    Buffer::pattern(ty, size_bytes / ty.size_bytes() as u64, seed, work_items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(kind: ParameterKind, size_bytes: u64, ty: Option<ScalarType>) -> Parameter {
        Parameter {
            name: None,
            kind,
            size_bytes,
            offset_bytes: 0,
            ty,
            pointee: None,
            aggregate: false,
        }
    }

    #[test]
    fn every_kind_gets_its_value() {
        let parameters = [
            Parameter {
                pointee: Some(ScalarType::F32),
                ..parameter(ParameterKind::Pointer, 8, None)
            },
            parameter(ParameterKind::Pointer, 8, None),
            parameter(ParameterKind::DynamicLds, 4, None),
            parameter(ParameterKind::Value, 4, Some(ScalarType::F32)),
            parameter(ParameterKind::Value, 1, Some(ScalarType::I8)),
            parameter(ParameterKind::Value, 8, None),
            parameter(ParameterKind::Value, 24, None),
            Parameter {
                aggregate: true,
                ..parameter(ParameterKind::Value, 4, None)
            },
        ];
        let bound = fill(&parameters, 1000, 64, 1 << 20).unwrap();
        let value = |index: usize| &bound.list[index].value;
        let Value::Buffer(floats) = value(0) else {
            panic!()
        };
        assert_eq!((floats.ty(), floats.size_bytes()), (ScalarType::F32, 16000));
        assert!((0..4000).all(|i| (0.0..1.0).contains(&floats.element(i).as_f64())));
        let Value::Buffer(words) = value(1) else {
            panic!()
        };
        assert!((0..4000).all(|i| words.element(i).bits < 1000));
        assert!(matches!(value(2), Value::Lds(1024)));
        assert!(
            matches!(value(3), Value::Scalar { value, assumed: false } if value.as_f64() == 1000.0)
        );
        assert!(matches!(value(4), Value::Scalar { value, .. } if value.bits == 127));
        assert!(matches!(value(5), Value::Scalar { value, assumed: true } if value.bits == 1000));
        assert!(matches!(value(6), Value::Bytes { bytes, .. } if *bytes == [0; 24]));
        assert!(matches!(value(7), Value::Bytes { bytes, .. } if *bytes == [0; 4]));
        assert!(
            bound
                .list
                .iter()
                .all(|binding| binding.source == ValueSource::Auto)
        );
    }

    #[test]
    fn narrow_signed_patterns_are_not_negative() {
        let bytes = pattern(Some(ScalarType::I8), 4096, 0, 1 << 20);
        assert!((0..4096).all(|i| bytes.element(i).as_integer().unwrap() >= 0));
    }

    #[test]
    fn too_much_memory_and_images_are_refused() {
        let pointers = vec![parameter(ParameterKind::Pointer, 8, None); 3];
        assert_eq!(
            fill(&pointers, 1 << 20, 256, 40 << 20).unwrap_err(),
            AutoError::Memory {
                need_bytes: 48 << 20,
                limit_bytes: 40 << 20
            }
        );
        assert!(matches!(
            fill(&pointers, u64::MAX, 256, 1 << 30),
            Err(AutoError::Memory { .. })
        ));
        let image = [parameter(ParameterKind::Opaque("image"), 8, None)];
        assert!(matches!(
            fill(&image, 1, 1, 1024),
            Err(AutoError::Opaque { kind: "image", .. })
        ));
    }
}
