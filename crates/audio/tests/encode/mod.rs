//! Encoders that only tests need.

/// A number of each kind of the shorten format, written bit by bit.
#[derive(Default)]
struct Bits {
    bits: Vec<bool>,
}

impl Bits {
    fn unsigned(&mut self, value: u32, n_low: u32) {
        self.bits.extend((0..value >> n_low).map(|_| false));
        self.bits.push(true);
        self.bits.extend((0..n_low).rev().map(|bit| value >> bit & 1 == 1));
    }

    fn signed(&mut self, value: i64, n_low: u32) {
        let code = if value < 0 { (!value << 1) | 1 } else { value << 1 };
        self.unsigned(u32::try_from(code).expect("residuals are small"), n_low + 1);
    }

    fn long(&mut self, value: u32) {
        let width = u32::BITS - value.leading_zeros();
        self.unsigned(width, 2);
        self.unsigned(value, width);
    }

    fn bytes(&self) -> Vec<u8> {
        let byte =
            |bits: &[bool]| (0..8).fold(0, |byte, at| byte << 1 | u8::from(bits.get(at).copied().unwrap_or(false)));
        let mut bytes: Vec<u8> = self.bits.chunks(8).map(byte).collect();
        // The format pads to words of four bytes.
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }
}

/// How a shorten stream is to be made.
pub(crate) struct Shorten {
    /// 1 or 2.
    pub(crate) version: u8,
    /// What the numbers are: 5 for 16-bit samples, 8 for u-law ranks, ...
    pub(crate) kind: u32,
    pub(crate) n_channels: usize,
    pub(crate) block_samples: usize,
    /// Blocks a mean, 0 for none.
    pub(crate) n_means: usize,
    /// Low bits that are zero in every sample and are not stored.
    pub(crate) shift: u32,
}

const COEFFICIENTS: [i64; 2] = [50, -20];

impl Shorten {
    /// The stream of `values`, interleaved; blocks take turns at all predictors.
    pub(crate) fn encode(&self, values: &[i64]) -> Vec<u8> {
        let mut bits = Bits::default();
        let max_order = COEFFICIENTS.len() as u32;
        for number in [self.kind, self.n_channels as u32, self.block_samples as u32, max_order, self.n_means as u32, 1]
        {
            bits.long(number);
        }
        bits.unsigned(77, 7); // the skipped byte
        bits.unsigned(9, 2); // verbatim bytes, which are not samples
        bits.unsigned(2, 5);
        bits.unsigned(1, 8);
        bits.unsigned(255, 8);
        if self.shift > 0 {
            bits.unsigned(6, 2);
            bits.unsigned(self.shift, 2);
        }
        let mut lanes: Vec<Lane> = (0..self.n_channels).map(|_| Lane::new(self.n_means)).collect();
        let mut block_samples = self.block_samples;
        for (index, block) in values.chunks(self.block_samples * self.n_channels).enumerate() {
            let n_samples = block.len() / self.n_channels;
            if n_samples != block_samples {
                bits.unsigned(5, 2);
                bits.long(n_samples as u32);
                block_samples = n_samples;
            }
            for (channel, lane) in lanes.iter_mut().enumerate() {
                let block = block.iter().skip(channel).step_by(self.n_channels).map(|v| v >> self.shift).collect();
                lane.encode(self, block, (index + channel) % 6, &mut bits);
            }
        }
        bits.unsigned(4, 2);
        [b"ajkg".as_slice(), &[self.version], &bits.bytes()].concat()
    }
}

struct Lane {
    history: Vec<i64>,
    means: Vec<i64>,
}

impl Lane {
    fn new(n_means: usize) -> Self {
        Self { history: vec![0; 3], means: vec![0; n_means] }
    }

    fn encode(&mut self, how: &Shorten, block: Vec<i64>, turn: usize, bits: &mut Bits) {
        let is_2 = how.version == 2;
        let n_means = how.n_means as i64;
        let mean = match n_means {
            0 => 0,
            _ if is_2 => ((self.means.iter().sum::<i64>() + n_means / 2) / n_means) >> how.shift,
            _ => self.means.iter().sum::<i64>() / n_means,
        };
        let is_zero = block.iter().all(|&v| v == 0);
        let values: Vec<i64> = self.history.iter().chain(&block).copied().collect();
        let predictions = (3..values.len()).map(|t| match turn {
            0 => mean,
            1 => values[t - 1],
            2 => 2 * values[t - 1] - values[t - 2],
            3 => 3 * (values[t - 1] - values[t - 2]) + values[t - 3],
            _ => {
                let past = [values[t - 1] - mean, values[t - 2] - mean];
                let sum: i64 = past.iter().zip(COEFFICIENTS).map(|(v, c)| v * c).sum();
                ((sum + if is_2 { 32 } else { 0 }) >> 5) + mean
            }
        });
        let residuals: Vec<i64> = predictions.zip(&block).map(|(prediction, value)| value - prediction).collect();
        if is_zero {
            bits.unsigned(8, 2);
        } else {
            bits.unsigned(if turn < 4 { turn as u32 } else { 7 }, 2);
            let largest = residuals.iter().map(|r| r.unsigned_abs()).max().unwrap_or(0);
            let width = (u64::BITS - largest.leading_zeros()).saturating_sub(2);
            bits.unsigned(width, 3);
            if turn >= 4 {
                bits.unsigned(COEFFICIENTS.len() as u32, 2);
                for c in COEFFICIENTS {
                    bits.signed(c, 5);
                }
            }
            for residual in residuals {
                bits.signed(residual, width);
            }
        }
        if n_means > 0 {
            let n_samples = block.len() as i64;
            let sum: i64 = block.iter().sum();
            self.means.remove(0);
            self.means.push(if is_2 { ((sum + n_samples / 2) / n_samples) << how.shift } else { sum / n_samples });
        }
        self.history = values[values.len() - 3..].to_vec();
    }
}

/// A SPHERE header of 1024 bytes with these lines.
pub(crate) fn sphere(fields: &[(&str, String)], body: &[u8]) -> Vec<u8> {
    let mut header = String::from("NIST_1A\n   1024\n");
    for (name, value) in fields {
        let kind = if value.parse::<i64>().is_ok() && *name != "sample_byte_format" {
            "-i".to_owned()
        } else {
            format!("-s{}", value.len())
        };
        header.extend([name, " ", &kind, " ", value, "\n"]);
    }
    header += "end_head\n";
    [format!("{header:1024}").as_bytes(), body].concat()
}
