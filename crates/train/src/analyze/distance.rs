//! How far routing and softmax are apart: how often the class with the largest sum of couplings is not the most probable
//! one, and how much is routed to each class.
//!
//! The paper calls it the edit distance rate without alignments: substitutions over slices.
//! The softmax sees lengths of capsules after a norm with a scale and an offset for each class, so the class with the
//! largest sum need not be the most probable: every class has a level of its own, and what matters is how it moves.
//! A label that no training utterance has may be above all others at any time, for its offset keeps it from being the
//! most probable; so the distance is also given without the classes that never are.

use std::collections::BTreeMap;
use std::iter::Sum;

use serde::Serialize;

use super::Routes;

/// Slices, and those where the two differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Distance {
    /// Slices compared.
    pub n_slices: usize,
    /// Slices where the class with the largest mass is not the most probable one.
    pub n_different: usize,
}

impl Distance {
    /// Between two sequences of classes, of one length.
    #[track_caller]
    pub fn between(most_coupled: &[usize], most_probable: &[usize]) -> Self {
        assert_eq!(most_coupled.len(), most_probable.len(), "distance: a class of each for every slice");
        let n_different = most_coupled.iter().zip(most_probable).filter(|(a, b)| a != b).count();
        Self { n_slices: most_coupled.len(), n_different }
    }

    /// Of one utterance and model.
    pub fn of(routes: &Routes) -> Self {
        Self::between(&routes.most_coupled(), &routes.most_probable())
    }

    /// The part of the slices that differ, 0 to 1; `None` without slices.
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

/// Sums over slices, for each class.
#[derive(Clone, Debug, PartialEq)]
pub struct Masses {
    classes: Vec<String>,
    n_slices: usize,
    sums: Vec<Sums>,
    /// Slices where a class has more mass than the most probable one, and is itself the most probable elsewhere.
    n_different: usize,
    /// The other slices, by the classes that have more mass: in utterances to come these may be the most probable.
    heavier: BTreeMap<Vec<usize>, usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    mass: f64,
    square: f64,
    n_most_probable: usize,
    mass_most_probable: f64,
}

/// What is routed to a class: the mass is the sum of the coupling coefficients of all capsules.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassMass {
    /// Its name.
    pub class: String,
    /// The mean over all slices.
    pub mass: f64,
    /// The standard deviation over all slices.
    pub deviation: f64,
    /// Slices where the class is the most probable.
    #[serde(rename = "n_likeliest")]
    pub n_most_probable: usize,
    /// The mean over those; `None` without any.
    #[serde(rename = "mass_likeliest")]
    pub mass_most_probable: Option<f64>,
}

impl Masses {
    /// Of one utterance and model.
    pub fn of(routes: &Routes) -> Self {
        let mut sums = vec![Sums::default(); routes.classes.len()];
        let mut heavier = BTreeMap::new();
        for (slice, most_probable) in routes.most_probable().into_iter().enumerate() {
            let masses = routes.masses_at(slice);
            for (sums, &mass) in sums.iter_mut().zip(masses) {
                sums.mass += f64::from(mass);
                sums.square += f64::from(mass) * f64::from(mass);
            }
            let is_heavier = |class: &usize| masses[*class] > masses[most_probable];
            *heavier.entry((0..masses.len()).filter(is_heavier).collect()).or_default() += 1;
            sums[most_probable].n_most_probable += 1;
            sums[most_probable].mass_most_probable += f64::from(masses[most_probable]);
        }
        let mut all =
            Self { classes: routes.classes.clone(), n_slices: routes.n_slices(), sums, n_different: 0, heavier };
        all.count_decided();
        all
    }

    /// Adds those of another utterance and the same model.
    #[track_caller]
    pub fn add(&mut self, other: &Self) {
        assert_eq!(self.classes, other.classes, "masses: the classes of one model");
        self.n_slices += other.n_slices;
        for (sums, other) in self.sums.iter_mut().zip(&other.sums) {
            sums.mass += other.mass;
            sums.square += other.square;
            sums.n_most_probable += other.n_most_probable;
            sums.mass_most_probable += other.mass_most_probable;
        }
        for (classes, n_slices) in &other.heavier {
            *self.heavier.entry(classes.clone()).or_default() += n_slices;
        }
        self.n_different += other.n_different;
        self.count_decided();
    }

    /// Counts the slices that further utterances cannot change, so that only a few sets of classes are kept.
    fn count_decided(&mut self) {
        let Self { sums, n_different, heavier, .. } = self;
        heavier.retain(|classes, n_slices| {
            let is_predicted = classes.iter().any(|class| 0 < sums[*class].n_most_probable);
            *n_different += if is_predicted { *n_slices } else { 0 };
            !is_predicted
        });
    }

    /// The distance of routing and softmax without the classes that are never the most probable.
    pub fn distance_of_predicted(&self) -> Distance {
        Distance { n_slices: self.n_slices, n_different: self.n_different }
    }

    /// One entry per class, in their order.
    pub fn each(&self) -> Vec<ClassMass> {
        let n_slices = self.n_slices.max(1) as f64;
        let line = |(class, sums): (&String, &Sums)| {
            let mass = sums.mass / n_slices;
            ClassMass {
                class: class.clone(),
                mass,
                deviation: (sums.square / n_slices - mass * mass).max(0.0).sqrt(),
                n_most_probable: sums.n_most_probable,
                mass_most_probable: (0 < sums.n_most_probable)
                    .then(|| sums.mass_most_probable / sums.n_most_probable as f64),
            }
        };
        self.classes.iter().zip(&self.sums).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::routes;
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

    #[test]
    fn a_class_has_its_level_and_the_one_where_it_is_most_probable_over_all_utterances() {
        let first = routes(&["a"], &[1.0, 1.0, 1.5, 0.5], &[0.9, 0.1, 0.2, 0.8]);
        let second = routes(&["a"], &[0.5, 1.5], &[0.7, 0.3]);
        let mut masses = Masses::of(&first);
        masses.add(&Masses::of(&second));
        let [a, blank] = masses.each().try_into().unwrap();
        assert_eq!((a.class.as_str(), a.mass, a.n_most_probable, a.mass_most_probable), ("a", 1.0, 2, Some(0.75)));
        assert!((a.deviation - (1.0f64 / 6.0).sqrt()).abs() < 1e-12, "{}", a.deviation);
        assert_eq!((blank.n_most_probable, blank.mass_most_probable), (1, Some(0.5)));
    }

    #[test]
    fn a_class_that_is_never_the_most_probable_does_not_count_as_heavier() {
        // `b` has the largest mass everywhere and is never predicted; where the blank is the most probable, `a` is heavier too.
        let masses = [1.0, 3.0, 0.5, 1.0, 3.0, 0.5];
        let mut all = Masses::of(&routes(&["a", "b"], &masses[..3], &[0.9, 0.0, 0.1]));
        assert_eq!(all.distance_of_predicted(), Distance { n_slices: 1, n_different: 0 });
        all.add(&Masses::of(&routes(&["a", "b"], &masses[3..], &[0.1, 0.0, 0.9])));
        assert_eq!(all.distance_of_predicted(), Distance { n_slices: 2, n_different: 1 });
    }

    #[test]
    fn a_class_that_is_never_the_most_probable_has_no_mass_there() {
        let masses = Masses::of(&routes(&["a"], &[1.0, 1.0], &[0.1, 0.9]));
        assert_eq!(masses.each()[0].mass_most_probable, None);
    }
}
