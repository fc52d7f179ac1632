//! How much is routed to a class, and how much where it is the likeliest: routes in, a line for each class out.
//!
//! The softmax sees lengths of capsules after a norm with a scale and an offset for each class, so the class with the
//! largest mass need not be the likeliest: every class has a level of its own, and what tells is how it moves.
//! A label that no training utterance has may lie above all others at any time, for its offset keeps it from being the
//! likeliest; so the distance is also told without the classes that never are.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Routes;
use super::distance::Distance;

/// Sums over slices, for each class.
#[derive(Clone, Debug, PartialEq)]
pub struct Masses {
    classes: Vec<String>,
    n_slices: usize,
    sums: Vec<Sums>,
    /// Slices where a class has more mass than the likeliest one, and is the likeliest itself in some other slice.
    n_different: usize,
    /// The other slices, by the classes that have more mass: utterances to come may have these as the likeliest.
    heavier: BTreeMap<Vec<usize>, usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    mass: f64,
    square: f64,
    n_likeliest: usize,
    mass_likeliest: f64,
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
    /// Slices where the class is the likeliest.
    pub n_likeliest: usize,
    /// The mean over those; nothing of none.
    pub mass_likeliest: Option<f64>,
}

impl Masses {
    /// Of what a model does with an utterance.
    pub fn of(routes: &Routes) -> Self {
        let mut sums = vec![Sums::default(); routes.classes.len()];
        let mut heavier = BTreeMap::new();
        for (slice, likeliest) in routes.likeliest().into_iter().enumerate() {
            let masses = routes.masses_at(slice);
            for (sums, &mass) in sums.iter_mut().zip(masses) {
                sums.mass += f64::from(mass);
                sums.square += f64::from(mass) * f64::from(mass);
            }
            let is_heavier = |class: &usize| masses[*class] > masses[likeliest];
            *heavier.entry((0..masses.len()).filter(is_heavier).collect()).or_default() += 1;
            sums[likeliest].n_likeliest += 1;
            sums[likeliest].mass_likeliest += f64::from(masses[likeliest]);
        }
        let mut all =
            Self { classes: routes.classes.clone(), n_slices: routes.n_slices(), sums, n_different: 0, heavier };
        all.settle();
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
            sums.n_likeliest += other.n_likeliest;
            sums.mass_likeliest += other.mass_likeliest;
        }
        for (classes, n_slices) in &other.heavier {
            *self.heavier.entry(classes.clone()).or_default() += n_slices;
        }
        self.n_different += other.n_different;
        self.settle();
    }

    /// Counts the slices that are decided, so that only a few sets of classes are kept.
    fn settle(&mut self) {
        let Self { sums, n_different, heavier, .. } = self;
        heavier.retain(|classes, n_slices| {
            let is_said = classes.iter().any(|class| 0 < sums[*class].n_likeliest);
            *n_different += if is_said { *n_slices } else { 0 };
            !is_said
        });
    }

    /// The distance of routing and softmax with the classes left out that are never the likeliest.
    pub fn distance_of_said(&self) -> Distance {
        Distance { n_slices: self.n_slices, n_different: self.n_different }
    }

    /// A line for each class, in their order.
    pub fn each(&self) -> Vec<ClassMass> {
        let n_slices = self.n_slices.max(1) as f64;
        let line = |(class, sums): (&String, &Sums)| {
            let mass = sums.mass / n_slices;
            ClassMass {
                class: class.clone(),
                mass,
                deviation: (sums.square / n_slices - mass * mass).max(0.0).sqrt(),
                n_likeliest: sums.n_likeliest,
                mass_likeliest: (0 < sums.n_likeliest).then(|| sums.mass_likeliest / sums.n_likeliest as f64),
            }
        };
        self.classes.iter().zip(&self.sums).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::routes;
    use super::*;

    #[test]
    fn a_class_has_its_level_and_the_one_where_it_is_likeliest_over_all_utterances() {
        let first = routes(&["a"], &[1.0, 1.0, 1.5, 0.5], &[0.9, 0.1, 0.2, 0.8]);
        let second = routes(&["a"], &[0.5, 1.5], &[0.7, 0.3]);
        let mut masses = Masses::of(&first);
        masses.add(&Masses::of(&second));
        let [a, blank] = masses.each().try_into().unwrap();
        assert_eq!((a.class.as_str(), a.mass, a.n_likeliest, a.mass_likeliest), ("a", 1.0, 2, Some(0.75)));
        assert!((a.deviation - (1.0f64 / 6.0).sqrt()).abs() < 1e-12, "{}", a.deviation);
        assert_eq!((blank.n_likeliest, blank.mass_likeliest), (1, Some(0.5)));
    }

    #[test]
    fn a_class_that_is_never_likeliest_does_not_count_as_heavier() {
        // `b` has the largest mass everywhere and is never said; where the blank is the likeliest, `a` is heavier too.
        let masses = [1.0, 3.0, 0.5, 1.0, 3.0, 0.5];
        let mut all = Masses::of(&routes(&["a", "b"], &masses[..3], &[0.9, 0.0, 0.1]));
        assert_eq!(all.distance_of_said(), Distance { n_slices: 1, n_different: 0 });
        all.add(&Masses::of(&routes(&["a", "b"], &masses[3..], &[0.1, 0.0, 0.9])));
        assert_eq!(all.distance_of_said(), Distance { n_slices: 2, n_different: 1 });
    }

    #[test]
    fn a_class_that_is_never_likeliest_has_no_mass_there() {
        let masses = Masses::of(&routes(&["a"], &[1.0, 1.0], &[0.1, 0.9]));
        assert_eq!(masses.each()[0].mass_likeliest, None);
    }
}
