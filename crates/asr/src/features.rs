//! Which features a model reads: the `[features]` table of its configuration in, the settings of the front end out.
//!
//! Training and recognition both go through [`mapping`], so that a frame has the same bits in both.

use srf_audio::features::FeaturesConfig as FrontEnd;
use srf_audio::features::cmvn::{CmvnConfig, CmvnMode};
use srf_model::config::{Cmvn, FeaturesConfig};

/// The front end that computes what `features` describes; what the table does not name is as in Kaldi.
pub fn mapping(features: &FeaturesConfig) -> FrontEnd {
    let FeaturesConfig {
        sample_rate_hz,
        window_ms,
        shift_ms,
        mel_bins,
        energy,
        delta_order,
        delta_window,
        cmvn,
        cmvn_variance,
    } = *features;
    let mode = match cmvn {
        Cmvn::Speaker => CmvnMode::Speaker,
        Cmvn::Global => CmvnMode::Global,
        Cmvn::Online => CmvnMode::Online,
        Cmvn::None => CmvnMode::Off,
    };
    FrontEnd {
        rate_hz: u32::try_from(sample_rate_hz).unwrap_or(u32::MAX),
        frame_ms: window_ms,
        shift_ms,
        n_mels: mel_bins,
        use_energy: energy,
        delta_order,
        delta_window_frames: delta_window,
        cmvn: CmvnConfig { mode, norm_vars: cmvn_variance, ..CmvnConfig::default() },
        ..FrontEnd::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_table_is_the_default_front_end() {
        assert_eq!(mapping(&FeaturesConfig::default()), FrontEnd::default());
    }

    #[test]
    fn a_frame_is_as_wide_as_the_model_expects() {
        for delta_order in 0..=3 {
            for energy in [false, true] {
                let features = FeaturesConfig { delta_order, energy, mel_bins: 23, ..FeaturesConfig::default() };
                assert_eq!(mapping(&features).n_dims(), features.n_features());
                assert_eq!(mapping(&features).look_ahead_frames(), features.reach_frames());
            }
        }
    }
}
