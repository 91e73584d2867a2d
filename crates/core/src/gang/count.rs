//! How many pods of a whole set are scheduled together while groups of different sizes exist (NAT-42).

/// The least number that is sure to exist: a higher one would let the gang wait for ever.
///
/// `existing` are the sizes of the groups that there are, `size` is that of the spec.
pub(crate) fn least_of_set(replicas: u32, size: u32, existing: &[u32]) -> u32 {
    let mut sure: Vec<u32> = existing.iter().map(|group| size.min(*group)).collect();
    sure.sort_unstable();
    let wanted = usize::try_from(replicas).unwrap_or(usize::MAX);
    let missing = u32::try_from(wanted.saturating_sub(sure.len())).unwrap_or(u32::MAX);
    let smallest = sure.first().copied().unwrap_or(size);
    let sum = sure
        .iter()
        .take(wanted)
        .fold(missing.saturating_mul(smallest), |sum, group| {
            sum.saturating_add(*group)
        });
    // The API's number is signed.
    sum.clamp(1, i32::MAX.unsigned_abs())
}
