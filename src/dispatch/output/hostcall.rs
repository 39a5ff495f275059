//! Hostcall: packets by which a wave asks the host for a service, and the messages inside.
//!
//! Knows: the layout of buffer, packets and payloads, message descriptors, the services. Must not know: where the buffer
//! lies, who looks at it. Follows the device library's ockl: a buffer of six words (packets, payloads, doorbell signal,
//! free stack, ready stack, index mask); a packet of next, active lanes, service, control; a payload of 8 words a lane.
//! Stacks hold an index in their low bits and a tag above, so that a packet that comes back is told from before; 0 ends.
use std::collections::HashMap;

use super::printf_buffer;

/// Bytes of the buffer's own words.
pub const BUFFER_BYTES: u64 = 48;
/// Bytes of a packet.
pub const PACKET_BYTES: u64 = 24;
/// Bytes of a packet's payload.
pub const PAYLOAD_BYTES: u64 = 64 * LANE_BYTES;
/// Bytes of a lane's payload.
pub const LANE_BYTES: u64 = 64;

/// Byte offsets in the buffer.
pub mod buffer_offset {
    /// Address of the packets.
    pub const PACKETS: u64 = 0;
    /// Address of the payloads.
    pub const PAYLOADS: u64 = 8;
    /// Handle of the signal that a wave adds to.
    pub const DOORBELL: u64 = 16;
    /// Top of the stack of free packets.
    pub const FREE: u64 = 24;
    /// Top of the stack of packets that wait for the host.
    pub const READY: u64 = 32;
    /// Mask of a packet's index.
    pub const INDEX_MASK: u64 = 40;
}

/// Byte offsets in a packet.
pub mod packet_offset {
    /// The next in its stack.
    pub const NEXT: u64 = 0;
    /// EXEC of the wave.
    pub const ACTIVE: u64 = 8;
    /// Service, 32 bits.
    pub const SERVICE: u64 = 16;
    /// Bit 0: waits for the host.
    pub const CONTROL: u64 = 20;
}

/// A service that a wave asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Calls a function of the host by its address.
    FunctionCall,
    /// A part of a message to print.
    Printf,
    /// Memory for the device heap.
    DeviceMemory,
    /// A report of the address sanitizer.
    Sanitizer,
    /// Another number.
    Unknown(u32),
}

impl From<u32> for Service {
    fn from(number: u32) -> Self {
        match number {
            1 => Self::FunctionCall,
            2 => Self::Printf,
            3 => Self::DeviceMemory,
            4 => Self::Sanitizer,
            other => Self::Unknown(other),
        }
    }
}

impl std::fmt::Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::FunctionCall => f.write_str("calls of host functions"),
            Self::Printf => f.write_str("printf"),
            Self::DeviceMemory => f.write_str("memory for the device heap"),
            Self::Sanitizer => f.write_str("reports of the address sanitizer"),
            Self::Unknown(number) => write!(f, "service {number}"),
        }
    }
}

/// The first packet of a message.
const BEGIN: u64 = 1;
/// The last packet of a message.
const END: u64 = 2;
/// Messages that may be open at the same time: more than waves of any device have lanes.
const MAX_OPEN: usize = 1 << 20;
/// Words of one message.
const MAX_WORDS: usize = 1 << 17;

/// A complete message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Its text.
    pub text: Vec<u8>,
    /// It was meant for standard error.
    pub to_error: bool,
}

/// Messages in the making.
#[derive(Debug, Default)]
pub struct Messages {
    open: HashMap<u64, Vec<u64>>,
    last: u64,
}

impl Messages {
    /// Takes one lane's part of a message: the descriptor and up to 7 words. Gives what the lane finds in its first word
    /// when the packet comes back (the descriptor with the message's number, or at its end the length of the text), and
    /// the message if it is complete.
    ///
    /// # Errors
    /// What is wrong with the part.
    pub fn take(&mut self, payload: &[u64; 8]) -> Result<(u64, Option<Printed>), String> {
        let [descriptor, words @ ..] = payload;
        let length = (descriptor >> 5 & 7) as usize;
        let number = if descriptor & BEGIN != 0 {
            if self.open.len() >= MAX_OPEN {
                return Err(format!("more than {MAX_OPEN} messages without an end"));
            }
            self.last += 1;
            self.open.insert(self.last, Vec::new());
            self.last
        } else {
            descriptor >> 8
        };
        let Some(message) = self.open.get_mut(&number) else {
            return Err(format!("a part of message {number}, which has not begun"));
        };
        if message.len() < MAX_WORDS {
            message.extend_from_slice(words.get(..length).unwrap_or(words));
        }
        if descriptor & END == 0 {
            // The next part does not begin the message.
            return Ok((number << 8 | descriptor & 0xff & !BEGIN, None));
        }
        let message = self.open.remove(&number).unwrap_or_default();
        let Some((control, body)) = message.split_first() else {
            return Err(format!("message {number} is empty"));
        };
        let bytes: Vec<u8> = body.iter().flat_map(|word| word.to_le_bytes()).collect();
        let printed = Printed {
            text: printf_buffer::message(&bytes),
            to_error: control & 1 != 0,
        };
        Ok((printed.text.len() as u64, Some(printed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(descriptor: u64, words: &[u64]) -> [u64; 8] {
        let mut payload = [0; 8];
        payload[0] = descriptor;
        payload[1..=words.len()].copy_from_slice(words);
        payload
    }

    fn words(text: &[u8]) -> Vec<u64> {
        text.chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(word)
            })
            .collect()
    }

    /// As `printf("n=%d %s\n", 5, "abc")` is lowered: begin, format, argument, string with the end.
    #[test]
    fn parts_of_two_messages_are_put_together() {
        let mut messages = Messages::default();
        let (first, none) = messages.take(&payload(BEGIN | 1 << 5, &[0])).unwrap();
        assert_eq!((first, none), (1 << 8 | 1 << 5, None));
        let (second, _) = messages.take(&payload(BEGIN | 1 << 5, &[1])).unwrap();
        assert_eq!(second >> 8, 2);
        let part = |number: u64, flags: u64, words: &[u64]| {
            payload(number << 8 | flags | (words.len() as u64) << 5, words)
        };
        messages.take(&part(1, 0, &words(b"n=%d %s\n\0"))).unwrap();
        messages.take(&part(2, 0, &words(b"oops\0"))).unwrap();
        messages.take(&part(1, 0, &[5])).unwrap();
        let (length, printed) = messages.take(&part(2, END, &[])).unwrap();
        assert_eq!(
            (length, printed.unwrap()),
            (
                4,
                Printed {
                    text: b"oops".to_vec(),
                    to_error: true
                }
            )
        );
        let (length, printed) = messages.take(&part(1, END, &words(b"abc\0"))).unwrap();
        let printed = printed.unwrap();
        assert_eq!(
            (length, printed.text.as_slice()),
            (8, b"n=5 abc\n".as_slice())
        );
        assert!(!printed.to_error);
        assert!(messages.take(&part(1, END, &[])).is_err(), "it has ended");
        assert!(messages.open.is_empty());
    }
}
