//! Chooses which utterances are trained on together: batches within a budget of frames.
//!
//! Utterances of similar length share a bucket, whose batches have as many utterances as fit the budget if each is as
//! long as the bucket's bound.
//! Batches are formed anew in every epoch, from the seed and the epoch alone, and every utterance is in exactly one.

use fastrand::Rng;

use crate::seed::generator;

/// The bound of the first bucket, and from one bound to the next.
const FIRST_BOUND: usize = 241;
const BOUND_STEP: usize = 150;

/// Which generator.
const BATCHES: u64 = 5;

/// Utterances shorter than `bound` frames, `size` of them in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Frames; the utterances are shorter.
    pub bound: usize,
    /// Utterances in a batch.
    pub size: usize,
}

/// Buckets for a budget; utterances beyond the last bound are batches of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets(Vec<Bucket>);

impl Buckets {
    /// For batches of at most `batch_frames` frames.
    pub fn new(batch_frames: usize) -> Self {
        let bounds = (0..).map(|n| FIRST_BOUND + n * BOUND_STEP);
        let all = bounds.map(|bound| Bucket { bound, size: batch_frames / bound }).take_while(|bucket| bucket.size > 1);
        let mut buckets: Vec<Bucket> = Vec::new();
        for bucket in all {
            match buckets.last_mut() {
                // Of equal sizes the largest bound is enough.
                Some(last) if last.size == bucket.size => *last = bucket,
                _ => buckets.push(bucket),
            }
        }
        Self(buckets)
    }

    /// The buckets, the shortest first.
    pub fn all(&self) -> &[Bucket] {
        &self.0
    }

    /// The bucket of an utterance, `all().len()` beyond the last.
    fn of(&self, n_frames: usize) -> usize {
        self.0.partition_point(|bucket| bucket.bound <= n_frames)
    }

    /// Batches of utterances with these lengths, as indices, in the order in which they are trained on in `epoch`.
    pub fn shuffled(&self, lengths: &[usize], seed: u64, epoch: usize) -> Vec<Vec<usize>> {
        let rng = &mut generator(seed, &[BATCHES, epoch as u64]);
        let mut batches = self.batches(lengths, |members| shuffle(rng, members));
        shuffle(rng, &mut batches);
        batches
    }

    /// Batches of utterances with these lengths in a fixed order, for validation.
    pub fn in_order(&self, lengths: &[usize]) -> Vec<Vec<usize>> {
        self.batches(lengths, |_| ())
    }

    fn batches(&self, lengths: &[usize], mut arrange: impl FnMut(&mut Vec<usize>)) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.0.len() + 1];
        for (index, &n_frames) in lengths.iter().enumerate() {
            members[self.of(n_frames)].push(index);
        }
        let mut batches = Vec::new();
        for (bucket, mut members) in members.into_iter().enumerate() {
            arrange(&mut members);
            let size = self.0.get(bucket).map_or(1, |bucket| bucket.size);
            batches.extend(members.chunks(size).map(<[usize]>::to_vec));
        }
        batches
    }
}

/// By Fisher and Yates: every order is equally likely.
fn shuffle<T>(rng: &mut Rng, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.usize(..=last));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(batch_frames: usize) -> (Vec<usize>, Vec<usize>) {
        Buckets::new(batch_frames).all().iter().map(|bucket| (bucket.bound, bucket.size)).unzip()
    }

    #[test]
    fn the_bounds_and_sizes_of_the_papers_budgets() {
        let (bounds, sizes) = table(7000);
        assert_eq!(bounds, [241, 391, 541, 691, 841, 991, 1141, 1291, 1741, 2191, 3391]);
        assert_eq!(sizes, [29, 17, 12, 10, 8, 7, 6, 5, 4, 3, 2]);
        let (bounds, sizes) = table(24_000);
        assert_eq!(bounds[..8], [241, 391, 541, 691, 841, 991, 1141, 1291]);
        assert_eq!(sizes, [99, 61, 44, 34, 28, 24, 21, 18, 16, 15, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
        assert_eq!(table(300), (vec![], vec![]));
    }

    #[test]
    fn a_bound_belongs_to_the_next_bucket() {
        let buckets = Buckets::new(7000);
        assert_eq!(
            [buckets.of(240), buckets.of(241), buckets.of(390), buckets.of(391), buckets.of(9999)],
            [0, 1, 1, 2, 11]
        );
    }

    #[test]
    fn mates_and_order_change_with_the_epoch_and_the_seed_and_with_nothing_else() {
        let lengths: Vec<usize> = (0..100).map(|n| 100 + 7 * n).collect();
        let buckets = Buckets::new(3000);
        let first = buckets.shuffled(&lengths, 1, 1);
        assert_eq!(first, buckets.shuffled(&lengths, 1, 1));
        assert_ne!(first, buckets.shuffled(&lengths, 1, 2));
        assert_ne!(first, buckets.shuffled(&lengths, 2, 1));
        let mates = |mut batches: Vec<Vec<usize>>| {
            batches.iter_mut().for_each(|batch| batch.sort_unstable());
            batches.sort();
            batches
        };
        assert_ne!(mates(first), mates(buckets.shuffled(&lengths, 1, 2)));
    }

    proptest! {
        #[test]
        fn every_utterance_is_in_one_batch_and_no_batch_of_several_is_over_budget(
            lengths in prop::collection::vec(0_usize..3000, 0..200), batch_frames in 1_usize..20_000, seed in any::<u64>(),
        ) {
            let buckets = Buckets::new(batch_frames);
            for batches in [buckets.shuffled(&lengths, seed, 3), buckets.in_order(&lengths)] {
                let mut seen: Vec<usize> = batches.concat();
                seen.sort_unstable();
                prop_assert_eq!(seen, (0..lengths.len()).collect::<Vec<_>>());
                for batch in batches {
                    let longest = batch.iter().map(|&n| lengths[n]).max().unwrap();
                    prop_assert!(batch.len() == 1 || batch.len() * longest <= batch_frames);
                }
            }
        }
    }
}
