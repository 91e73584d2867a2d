//! Bounds of the histograms (MET-4, MET-7).

/// Time of reconciles.
pub(super) fn reconcile() -> Vec<f64> {
    let fine = [
        0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5,
    ];
    let middle = [
        0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0,
    ];
    let coarse = [
        6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
    ];
    [&fine[..], &middle, &coarse].concat()
}

/// Times in queues: from 1e-8 to 1e3.
pub(super) fn powers_of_ten() -> Vec<f64> {
    (-8..=3).map(|exponent| 10_f64.powi(exponent)).collect()
}

/// Rollouts and starts of groups.
pub(super) fn minutes() -> Vec<f64> {
    [1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200]
        .map(f64::from)
        .to_vec()
}
