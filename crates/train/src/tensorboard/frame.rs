//! Protocol buffers and the frames they are kept in: fields in, bytes with checksums out.

/// A protocol buffer under construction.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;
const FIXED_32: u32 = 5;

impl Message {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn whole(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.key(field, FIXED_64);
        self.bytes.extend(value.to_le_bytes());
    }

    pub(super) fn float(&mut self, field: u32, value: f32) {
        self.key(field, FIXED_32);
        self.bytes.extend(value.to_le_bytes());
    }

    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.delimited(field, value.as_bytes());
    }

    pub(super) fn message(&mut self, field: u32, value: &Message) {
        self.delimited(field, &value.bytes);
    }

    fn delimited(&mut self, field: u32, value: &[u8]) {
        self.key(field, LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.bytes.extend(value);
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    /// Seven bits a byte, the least first; the eighth says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

/// `payload` in a frame: its length, the checksum of that, itself, and its checksum.
pub(super) fn framed(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    let mut frame = Vec::with_capacity(payload.len() + 16);
    frame.extend(length);
    frame.extend(masked_checksum(&length).to_le_bytes());
    frame.extend(payload);
    frame.extend(masked_checksum(payload).to_le_bytes());
    frame
}

/// CRC-32C, turned and shifted: a checksum over bytes that hold checksums would be weak otherwise.
fn masked_checksum(bytes: &[u8]) -> u32 {
    checksum(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), lowest bit first.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};
