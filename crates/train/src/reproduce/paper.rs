//! The tables of the paper: its rows, figures and claims, as data.

use super::table::Quantity::{
    Correlation, DecodingTime, Distance, EndsFound, Error, Parameters, RealTimeFactor, TrainingTime,
};
use super::table::Relation::{Alike, AtLeast, Less};
use super::table::{Claim, Column, Figure, Quantity, Relation, Row, Table};
use crate::corpus::{DEV, TEST};

/// All tables, in the order of their numbers; 6 to 8 are those behind the five of TIMIT.
pub const TABLES: &[Table] = &[ROUTING, WINDOWS, DEPTH, ARCHITECTURES, TIMES, WSJ, WSJ_TIMES, DISTANCE];

const fn column(quantity: Quantity, part: &'static str) -> Column {
    Column { quantity, part }
}

const fn row(title: &'static str, recipe: &'static str, millions: f64, paper: &'static [Option<Figure>]) -> Row {
    Row { title, recipe, millions, paper }
}

const fn claim(quantity: Quantity, relation: Relation, says: &'static str) -> Claim {
    Claim { says, quantity, relation }
}

/// A figure.
#[allow(clippy::unnecessary_wraps, reason = "beside figures that the paper does not give")]
const fn f(value: f64) -> Option<Figure> {
    Some(Figure { value, spread: None })
}

/// A figure with half of its interval.
#[allow(clippy::unnecessary_wraps, reason = "beside figures that the paper does not give")]
const fn pm(value: f64, spread: f64) -> Option<Figure> {
    Some(Figure { value, spread: Some(spread) })
}

const ERRORS: &[Column] = &[column(Error, DEV), column(Error, TEST)];

const TIME_COLUMNS: &[Column] =
    &[column(TrainingTime, TEST), column(DecodingTime, TEST), column(RealTimeFactor, TEST), column(Correlation, TEST)];

const ROUTING: Table = Table {
    name: "routing",
    number: "1",
    title: "Phone error rates by routing method and iterations",
    is_of_phones: true,
    columns: ERRORS,
    rows: &[
        row("DR, 1 iteration", "timit/routing-dr-1", 0.21, &[pm(25.6, 0.4), pm(26.8, 0.3)]),
        row("DR, 2 iterations", "timit/routing-dr-2", 0.21, &[pm(25.4, 0.2), pm(26.6, 0.4)]),
        row("DR, 3 iterations", "timit/routing-dr-3", 0.21, &[pm(25.4, 0.3), pm(26.8, 0.4)]),
        row("SDR, 1 iteration", "timit/routing-sdr-1", 0.21, &[pm(24.4, 0.4), pm(25.5, 0.4)]),
        row("SDR, 2 iterations", "timit/routing-sdr-2", 0.21, &[pm(24.3, 0.5), pm(25.7, 0.3)]),
        row("SDR, 3 iterations", "timit/routing-sdr-3", 0.21, &[pm(24.5, 0.3), pm(25.8, 0.3)]),
    ],
    claims: &[
        claim(Error, Less("routing-sdr-1", "routing-dr-1"), "SDR is better than DR (1 iteration)"),
        claim(Error, Less("routing-sdr-2", "routing-dr-2"), "SDR is better than DR (2 iterations)"),
        claim(Error, Less("routing-sdr-3", "routing-dr-3"), "SDR is better than DR (3 iterations)"),
        claim(Error, Alike("routing-dr-1", "routing-dr-2"), "the number of iterations does not matter to DR (1, 2)"),
        claim(Error, Alike("routing-dr-2", "routing-dr-3"), "the number of iterations does not matter to DR (2, 3)"),
        claim(Error, Alike("routing-sdr-1", "routing-sdr-2"), "the number of iterations does not matter to SDR (1, 2)"),
        claim(Error, Alike("routing-sdr-2", "routing-sdr-3"), "the number of iterations does not matter to SDR (2, 3)"),
    ],
    note: "The paper's figures are means of 5 runs.",
};

const WINDOWS: Table = Table {
    name: "windows",
    number: "2",
    title: "Phone error rates and ends of sentences found, by window",
    is_of_phones: true,
    columns: &[column(Error, DEV), column(EndsFound, DEV), column(Error, TEST), column(EndsFound, TEST)],
    rows: &[
        row("window 0-0", "timit/window-0-0", 0.21, &[f(24.4), f(52.8), f(25.6), f(55.7)]),
        row("window 1-0", "timit/window-1-0", 0.30, &[f(23.8), f(25.5), f(25.1), f(26.6)]),
        row("window 1-1", "timit/window-1-1", 0.39, &[f(21.8), f(66.5), f(23.7), f(69.3)]),
        row("window 2-0", "timit/window-2-0", 0.39, &[f(23.3), f(27.5), f(24.5), f(26.6)]),
        row("window 2-1", "timit/window-2-1", 0.48, &[f(22.5), f(53.0), f(23.6), f(53.1)]),
        row("window 2-2", "timit/window-2-2", 0.57, &[f(20.2), f(99.8), f(21.7), f(100.0)]),
        row("window 3-2", "timit/window-3-2", 0.66, &[f(20.8), f(94.0), f(21.9), f(93.8)]),
        row("window 4-1", "timit/window-4-1", 0.66, &[f(21.1), f(84.5), f(22.6), f(81.3)]),
        row("window 5-0", "timit/window-5-0", 0.66, &[f(22.3), f(32.5), f(23.9), f(32.3)]),
    ],
    claims: &[
        claim(Error, Less("window-1-1", "window-0-0"), "errors fall with balanced windows (0-0 to 1-1)"),
        claim(Error, Less("window-2-2", "window-1-1"), "errors fall with balanced windows (1-1 to 2-2)"),
        claim(Error, Less("window-1-1", "window-2-0"), "of windows of one size the balanced one is best (1-1, 2-0)"),
        claim(Error, Less("window-2-2", "window-5-0"), "balance beats size (2-2, 5-0)"),
        claim(Error, Less("window-4-1", "window-5-0"), "errors grow as contexts differ more (4-1, 5-0)"),
        claim(Error, Less("window-3-2", "window-4-1"), "errors grow as contexts differ more (3-2, 4-1)"),
        claim(EndsFound, Less("window-0-0", "window-1-1"), "more ends are found with more right context (0-0, 1-1)"),
        claim(EndsFound, Less("window-1-1", "window-2-2"), "more ends are found with more right context (1-1, 2-2)"),
        claim(EndsFound, Less("window-5-0", "window-4-1"), "more ends are found with more right context (5-0, 4-1)"),
        claim(EndsFound, Less("window-4-1", "window-3-2"), "more ends are found with more right context (4-1, 3-2)"),
        claim(EndsFound, Less("window-1-0", "window-0-0"), "a slice more to the left alone costs ends (1-0, 0-0)"),
        claim(EndsFound, Less("window-2-1", "window-1-1"), "a slice more to the left alone costs ends (2-1, 1-1)"),
        claim(EndsFound, Less("window-3-2", "window-2-2"), "a slice more to the left alone costs ends (3-2, 2-2)"),
    ],
    note: "",
};

const DEPTH: Table = Table {
    name: "depth",
    number: "3",
    title: "Phone error rates by depth of capsules",
    is_of_phones: true,
    columns: ERRORS,
    rows: &[
        row("depth 2", "timit/depth-2", 0.14, &[f(26.6), f(27.9)]),
        row("depth 4", "timit/depth-4", 0.19, &[f(23.7), f(25.0)]),
        row("depth 8", "timit/depth-8", 0.39, &[f(21.8), f(23.7)]),
        row("depth 16", "timit/depth-16", 1.15, &[f(20.6), f(21.9)]),
    ],
    claims: &[
        claim(Error, Less("depth-4", "depth-2"), "errors fall with depth (2 to 4)"),
        claim(Error, Less("depth-8", "depth-4"), "errors fall with depth (4 to 8)"),
        claim(Error, Less("depth-16", "depth-8"), "errors fall with depth (8 to 16)"),
    ],
    note: "",
};

const ARCHITECTURES: Table = Table {
    name: "architectures",
    number: "4",
    title: "Phone error rates of networks of capsules and others",
    is_of_phones: true,
    columns: ERRORS,
    rows: &[
        row("BLSTM-5L-250H", "timit/blstm-5l-250h", 6.80, &[None, f(18.4)]),
        row("ULSTM-3L-421H", "timit/ulstm-3l-421h", 3.80, &[None, f(19.6)]),
        row("CNN-10L-Maxout", "timit/cnn-10l-maxout", 4.30, &[f(16.7), f(18.2)]),
        row("TF-5L", "timit/tf-5l", 1.99, &[f(18.9), f(19.9)]),
        row("TF-10L", "timit/tf-10l", 3.63, &[f(18.0), f(19.1)]),
        row("TF-20L", "timit/tf-20l", 6.93, &[f(17.5), f(18.6)]),
        row("SRF-1L", "timit/srf-1l", 1.01, &[f(20.1), f(21.5)]),
        row("SRF-2L", "timit/srf-2l", 0.99, &[f(18.8), f(20.2)]),
        row("SRF-5L", "timit/srf-5l", 1.58, &[f(16.5), f(18.1)]),
        row("SRF-7L", "timit/srf-7l", 1.97, &[f(15.9), f(17.5)]),
    ],
    claims: &[
        claim(Error, Less("srf-7l", "cnn-10l-maxout"), "SRF-7L is better than CNN-10L-Maxout"),
        claim(Parameters, Less("srf-7l", "cnn-10l-maxout"), "SRF-7L has fewer parameters than CNN-10L-Maxout"),
        claim(Error, Alike("srf-5l", "cnn-10l-maxout"), "SRF-5L is about as good as CNN-10L-Maxout"),
        claim(Parameters, Less("srf-5l", "cnn-10l-maxout"), "SRF-5L has fewer parameters than CNN-10L-Maxout"),
        claim(Error, Less("srf-7l", "blstm-5l-250h"), "SRF-7L is better than BLSTM-5L-250H"),
        claim(Error, Less("srf-7l", "ulstm-3l-421h"), "SRF-7L is better than ULSTM-3L-421H"),
        claim(Error, Less("srf-7l", "tf-20l"), "SRF-7L is better than TF-20L"),
        claim(Error, Less("srf-7l", "tf-5l"), "SRF-7L is better than TF-5L, which is as large"),
        claim(Error, Less("srf-2l", "srf-1l"), "errors fall with layers (1 to 2)"),
        claim(Parameters, Less("srf-2l", "srf-1l"), "SRF-2L has fewer parameters than SRF-1L"),
        claim(Error, Less("srf-5l", "srf-2l"), "errors fall with layers (2 to 5)"),
        claim(Error, Less("srf-7l", "srf-5l"), "errors fall with layers (5 to 7)"),
    ],
    note: "The paper quotes BLSTM, ULSTM and CNN from others' work.",
};

const TIMES: Table = Table {
    name: "times",
    number: "5",
    title: "Time to train an epoch and to decode the test set, TIMIT",
    is_of_phones: true,
    columns: TIME_COLUMNS,
    rows: &[
        row("TF-5L", "timit/tf-5l", 1.99, &[f(12.0), f(12.0), f(0.02), f(0.90)]),
        row("TF-10L", "timit/tf-10l", 3.63, &[f(13.0), f(13.0), f(0.02), f(0.93)]),
        row("TF-20L", "timit/tf-20l", 6.93, &[f(17.0), f(16.0), f(0.03), f(0.93)]),
        row("SRF-1L", "timit/srf-1l", 1.01, &[f(98.0), f(14.0), f(0.02), f(0.96)]),
        row("SRF-2L", "timit/srf-2l", 0.99, &[f(98.0), f(17.0), f(0.03), f(0.97)]),
        row("SRF-5L", "timit/srf-5l", 1.58, &[f(168.0), f(25.0), f(0.04), f(0.98)]),
        row("SRF-7L", "timit/srf-7l", 1.97, &[f(215.0), f(32.0), f(0.06), f(1.00)]),
    ],
    claims: &[
        claim(TrainingTime, Less("tf-5l", "srf-7l"), "SRF-7L trains longer than TF-5L, which is as large"),
        claim(TrainingTime, Less("srf-2l", "srf-5l"), "training time grows with size (SRF-2L to 5L)"),
        claim(TrainingTime, Less("srf-5l", "srf-7l"), "training time grows with size (SRF-5L to 7L)"),
        claim(DecodingTime, Less("srf-1l", "srf-2l"), "decoding time grows with layers (1 to 2)"),
        claim(DecodingTime, Less("srf-2l", "srf-5l"), "decoding time grows with layers (2 to 5)"),
        claim(DecodingTime, Less("srf-5l", "srf-7l"), "decoding time grows with layers (5 to 7)"),
        claim(Correlation, AtLeast("tf-5l", 0.90), "r is at least 0.90 (TF-5L)"),
        claim(Correlation, AtLeast("tf-10l", 0.90), "r is at least 0.90 (TF-10L)"),
        claim(Correlation, AtLeast("tf-20l", 0.90), "r is at least 0.90 (TF-20L)"),
        claim(Correlation, AtLeast("srf-1l", 0.90), "r is at least 0.90 (SRF-1L)"),
        claim(Correlation, AtLeast("srf-2l", 0.90), "r is at least 0.90 (SRF-2L)"),
        claim(Correlation, AtLeast("srf-5l", 0.90), "r is at least 0.90 (SRF-5L)"),
    ],
    note: "The paper's times are those of a graphics card (RTX 3090).",
};

const WSJ: Table = Table {
    name: "wsj",
    number: "6",
    title: "Word error rates on WSJ",
    is_of_phones: false,
    columns: ERRORS,
    rows: &[
        row("BLSTM-5L", "wsj/blstm-5l", 21.11, &[f(23.4), f(18.0)]),
        row("ULSTM-5L", "wsj/ulstm-5l", 21.15, &[f(33.7), f(27.4)]),
        row("CNN-10L", "wsj/cnn-10l", 21.12, &[f(33.7), f(26.9)]),
        row("CNN-15L", "wsj/cnn-15l", 21.08, &[f(30.1), f(24.7)]),
        row("TF-20L", "wsj/tf-20l", 21.13, &[f(25.4), f(21.6)]),
        row("SRF-7L-Small", "wsj/srf-7l-small", 7.75, &[f(26.4), f(20.3)]),
        row("SRF-7L-Big", "wsj/srf-7l-big", 15.45, &[f(25.3), f(19.4)]),
        row("SRF-10L-Small", "wsj/srf-10l-small", 10.51, &[f(23.4), f(18.6)]),
        row("SRF-10L-Big", "wsj/srf-10l-big", 21.13, &[f(22.4), f(16.9)]),
    ],
    claims: &[
        claim(Error, Less("srf-10l-big", "blstm-5l"), "SRF-10L-Big is better than BLSTM-5L"),
        claim(Error, Less("srf-7l-small", "ulstm-5l"), "SRF-7L-Small is better than ULSTM-5L"),
        claim(Error, Less("srf-7l-small", "cnn-15l"), "SRF-7L-Small is better than CNN-15L"),
        claim(Error, Less("srf-10l-small", "srf-7l-big"), "SRF-10L-Small is better than SRF-7L-Big"),
        claim(Parameters, Less("srf-10l-small", "srf-7l-big"), "SRF-10L-Small has fewer parameters than SRF-7L-Big"),
        claim(Error, Less("srf-10l-small", "tf-20l"), "SRF-10L-Small is better than TF-20L"),
        claim(Parameters, Less("srf-10l-small", "tf-20l"), "SRF-10L-Small has fewer parameters than TF-20L"),
    ],
    note: "dev is dev-93, test is eval-92.",
};

const WSJ_TIMES: Table = Table {
    name: "wsj-times",
    number: "7",
    title: "Time to train an epoch and to decode the test set, WSJ",
    is_of_phones: false,
    columns: TIME_COLUMNS,
    rows: &[
        row("BLSTM-5L", "wsj/blstm-5l", 21.11, &[f(1414.0), f(31.0), f(0.01), f(0.96)]),
        row("ULSTM-5L", "wsj/ulstm-5l", 21.15, &[f(1030.0), f(30.0), f(0.01), f(0.96)]),
        row("CNN-10L", "wsj/cnn-10l", 21.12, &[f(2143.0), f(24.0), f(0.01), f(0.94)]),
        row("CNN-15L", "wsj/cnn-15l", 21.08, &[f(2310.0), f(26.0), f(0.01), f(0.94)]),
        row("TF-20L", "wsj/tf-20l", 21.13, &[f(880.0), f(29.0), f(0.01), f(0.91)]),
        row("SRF-7L-Small", "wsj/srf-7l-small", 7.75, &[f(20_814.0), f(112.0), f(0.05), f(0.99)]),
        row("SRF-7L-Big", "wsj/srf-7l-big", 15.45, &[f(31_406.0), f(112.0), f(0.05), f(0.99)]),
        row("SRF-10L-Small", "wsj/srf-10l-small", 10.51, &[f(28_271.0), f(153.0), f(0.06), f(0.99)]),
        row("SRF-10L-Big", "wsj/srf-10l-big", 21.13, &[f(51_666.0), f(153.0), f(0.06), f(1.00)]),
    ],
    claims: &[
        claim(TrainingTime, Less("tf-20l", "srf-10l-big"), "SRF-10L-Big trains longer than TF-20L"),
        claim(TrainingTime, Less("blstm-5l", "srf-10l-big"), "SRF-10L-Big trains longer than BLSTM-5L"),
        claim(TrainingTime, Less("srf-7l-small", "srf-7l-big"), "training time grows with size (7L)"),
        claim(TrainingTime, Less("srf-10l-small", "srf-10l-big"), "training time grows with size (10L)"),
        claim(DecodingTime, Less("srf-7l-small", "srf-10l-small"), "decoding time grows with layers (Small)"),
        claim(DecodingTime, Less("srf-7l-big", "srf-10l-big"), "decoding time grows with layers (Big)"),
        claim(Correlation, AtLeast("blstm-5l", 0.91), "r is at least 0.91 (BLSTM-5L)"),
        claim(Correlation, AtLeast("ulstm-5l", 0.91), "r is at least 0.91 (ULSTM-5L)"),
        claim(Correlation, AtLeast("cnn-10l", 0.91), "r is at least 0.91 (CNN-10L)"),
        claim(Correlation, AtLeast("cnn-15l", 0.91), "r is at least 0.91 (CNN-15L)"),
        claim(Correlation, AtLeast("tf-20l", 0.91), "r is at least 0.91 (TF-20L)"),
    ],
    note: "The paper's times are those of a graphics card (RTX 3090).",
};

const DISTANCE: Table = Table {
    name: "distance",
    number: "8",
    title: "How often the class with the largest sum of couplings is not the likeliest one",
    is_of_phones: true,
    columns: &[column(Distance, DEV), column(Distance, TEST)],
    rows: &[
        row("DR, 2 iterations", "timit/routing-dr-2", 0.21, &[f(0.14), f(0.14)]),
        row("DR, 3 iterations", "timit/routing-dr-3", 0.21, &[f(0.32), f(0.32)]),
        row("SDR, 1 iteration", "timit/routing-sdr-1", 0.21, &[f(0.80), f(0.81)]),
        row("SDR, 2 iterations", "timit/routing-sdr-2", 0.21, &[f(0.56), f(0.57)]),
        row("SDR, 3 iterations", "timit/routing-sdr-3", 0.21, &[f(0.50), f(0.51)]),
    ],
    claims: &[
        claim(Distance, Less("routing-dr-2", "routing-dr-3"), "with DR the distance grows with iterations (2, 3)"),
        claim(Distance, Less("routing-sdr-2", "routing-sdr-1"), "with SDR it falls with iterations (1, 2)"),
        claim(Distance, Less("routing-sdr-3", "routing-sdr-2"), "with SDR it falls with iterations (2, 3)"),
    ],
    note: "The paper heads its column with %, but defines a share of frames; ours is the share of slices, 0 to 1. \
           The runs are those of `routing`.",
};

#[cfg(test)]
mod tests;
