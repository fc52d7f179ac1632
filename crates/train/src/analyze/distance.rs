//! How far routing and softmax are apart: for every slice, whether the class with the largest mass is the likeliest.
//!
//! The paper calls it the edit distance rate without alignments: substitutions over slices.

use std::iter::Sum;

use super::Routes;

/// Slices, and those where the two differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Distance {
    /// Slices compared.
    pub n_slices: usize,
    /// Slices where the class with the largest mass is not the likeliest one.
    pub n_different: usize,
}

impl Distance {
    /// Between two sequences of classes, of one length.
    #[track_caller]
    pub fn between(heaviest: &[usize], likeliest: &[usize]) -> Self {
        assert_eq!(heaviest.len(), likeliest.len(), "distance: a class of each for every slice");
        let n_different = heaviest.iter().zip(likeliest).filter(|(a, b)| a != b).count();
        Self { n_slices: heaviest.len(), n_different }
    }

    /// Of what a model does with an utterance.
    pub fn of(routes: &Routes) -> Self {
        Self::between(&routes.heaviest(), &routes.likeliest())
    }

    /// The part of the slices that differ, 0 to 1; nothing of no slices.
    pub fn rate(&self) -> Option<f64> {
        (0 < self.n_slices).then(|| self.n_different as f64 / self.n_slices as f64)
    }
}

impl Sum for Distance {
    fn sum<I: Iterator<Item = Self>>(distances: I) -> Self {
        distances.fold(Self::default(), |sum, next| Self {
            n_slices: sum.n_slices + next.n_slices,
            n_different: sum.n_different + next.n_different,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::routes;
    use super::*;

    #[test]
    fn substitutions_are_counted_slice_by_slice_without_aligning() {
        // Aligned, one insertion and one deletion would do.
        let distance = Distance::between(&[1, 2, 3, 4], &[2, 3, 4, 4]);
        assert_eq!(distance, Distance { n_slices: 4, n_different: 3 });
        assert_eq!(distance.rate(), Some(0.75));
        assert_eq!(Distance::between(&[], &[]).rate(), None);
    }

    #[test]
    fn the_largest_mass_is_compared_with_the_largest_probability() {
        // Classes a, b, blank; by hand: a-a, b-blank, a-a (the first of equals), blank-blank.
        let masses = [0.9, 0.1, 0.0, 0.2, 0.5, 0.3, 0.4, 0.4, 0.2, 0.1, 0.1, 0.8];
        let probabilities = [0.8, 0.1, 0.1, 0.1, 0.2, 0.7, 0.6, 0.3, 0.1, 0.0, 0.1, 0.9];
        let routes = routes(&["a", "b"], &masses, &probabilities);
        assert_eq!(Distance::of(&routes), Distance { n_slices: 4, n_different: 1 });
    }

    #[test]
    fn a_total_is_of_slices_and_not_of_rates() {
        let each = [Distance { n_slices: 10, n_different: 10 }, Distance { n_slices: 90, n_different: 0 }];
        assert_eq!(each.into_iter().sum::<Distance>().rate(), Some(0.1));
    }
}
