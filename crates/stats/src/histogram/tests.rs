//! Histograms: recording, merging, writing and reading.

use base::SplitMix64;

use super::*;

#[test]
fn quantiles_are_exact_to_a_thousandth() {
    let mut random = SplitMix64::new(5);
    let mut values: Vec<u64> = (0..200_000)
        .map(|_| random.next_u64() % 5_000_000)
        .collect();
    let histogram = Histogram::of(values.iter().copied());
    values.sort_unstable();
    for share in [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0] {
        let rank = (share * values.len() as f64).ceil().max(1.0);
        let wanted = values[super::super::bootstrap::whole(rank) - 1] as f64;
        let found = histogram.quantile(share) as f64;
        assert!(
            (found / wanted - 1.0).abs() <= 0.001,
            "{share}: {found} {wanted}"
        );
    }
    let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
    assert!((histogram.mean() / mean - 1.0).abs() < 0.001);
    assert!(histogram.supports(0.9999) && !histogram.supports(0.999_99));
}

#[test]
fn text_and_back_changes_nothing() {
    let mut random = SplitMix64::new(6);
    let histogram = Histogram::of((0..10_000).map(|_| random.next_u64() % 40_000_000_000));
    let text = histogram.encode();
    // Readers of the format expect these first letters.
    assert!(text.starts_with("HISTFAAA"), "{text}");
    assert_eq!(Histogram::decode(&text), Ok(histogram));
    let empty = Histogram::default().encode();
    assert_eq!(Histogram::decode(&empty), Ok(Histogram::default()));
}

#[test]
fn histogram_of_another_program_is_read() {
    // Written by HdrHistogram's own recorder: 1 ns to an hour, as wrk2 and others use it.
    let mut other: Hdr<u64> = Hdr::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    other.record_n(1_000, 7).unwrap();
    other.record(200_000_000_000).unwrap();
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&other, &mut bytes)
        .unwrap();
    let read = Histogram::decode(&STANDARD.encode(bytes)).unwrap();
    assert_eq!((read.count(), read.quantile(0.5)), (8, 1_000));
    // Values beyond the bounds count as the maximum.
    let mut sum = Histogram::default();
    sum.merge(&read);
    assert_eq!(sum.count(), 8);
    assert!(sum.most() < 101_000_000_000);
}

#[test]
fn merging_adds_up() {
    let (low, high) = (Histogram::of(1..=1_000), Histogram::of(1_001..=2_000));
    let mut both = low;
    both.merge(&high);
    assert_eq!(both, Histogram::of(1..=2_000));
    both.merge(&Histogram::default());
    assert_eq!(both.count(), 2_000);
}

#[test]
fn curve_rises_to_one_and_is_bounded() {
    let histogram = Histogram::of((1..=5_000).map(|value| value * 7));
    let curve = histogram.curve(50);
    assert_eq!(curve.len(), 50);
    assert!(
        curve
            .windows(2)
            .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1)
    );
    assert_eq!(curve.last().map(|point| point.1), Some(1.0));
    assert_eq!(Histogram::of([3, 3, 9]).curve(50).len(), 2);
    assert!(Histogram::default().curve(50).is_empty());
}

#[test]
fn empty_histogram_has_no_quantiles() {
    let none = Histogram::default();
    assert_eq!((none.count(), none.least(), none.most()), (0, 0, 0));
    assert_eq!(none.quantile(0.5), 0);
    assert!(!none.supports(0.5));
}

#[test]
fn values_beyond_the_maximum_count_as_the_maximum() {
    let histogram = Histogram::of([1, u64::MAX]);
    assert_eq!(histogram.count(), 2);
    let max = histogram.most();
    assert!(
        (VALUE_MAX..VALUE_MAX + VALUE_MAX / 1_000).contains(&max),
        "{max}"
    );
}

#[test]
fn percentiles_are_written_as_plotters_read_them() {
    let text = Histogram::of((1..=1_000).map(|value| value * 1_000)).percentile_text(1_000.0);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0].split_whitespace().count(), 4);
    let median = lines
        .iter()
        .find(|line| line.contains(" 0.500000000000 "))
        .unwrap();
    let words: Vec<&str> = median.split_whitespace().collect();
    assert_eq!((words[2], words[3]), ("500", "2.00"));
    assert!(
        words[0]
            .parse::<f64>()
            .is_ok_and(|value| (value - 500.0).abs() < 0.5)
    );
    assert!(text.contains("Total count    =         1000]"), "{text}");
}

#[test]
fn nonsense_is_refused_whatever_it_is() {
    let refused = |text: &str| Histogram::decode(text).unwrap_err().to_string();
    assert_eq!(refused("*"), "not a histogram: it is not base64");
    assert_eq!(
        refused(""),
        "not a histogram: it is not of the form V2, deflated"
    );
    // A deflated megabyte of zeros, which takes a kilobyte.
    let packed = |plain: &[u8]| {
        use std::io::Write as _;
        let mut bytes = DEFLATED.to_be_bytes().to_vec();
        bytes.extend([0; 4]);
        let mut encoder = flate2::write::ZlibEncoder::new(bytes, flate2::Compression::best());
        encoder.write_all(plain).unwrap();
        STANDARD.encode(encoder.finish().unwrap())
    };
    assert_eq!(
        refused(&packed(&vec![0; 1 << 20])),
        "not a histogram: it is larger than any of three digits"
    );
    let header = |length: u32| {
        let mut plain = PLAIN.to_be_bytes().to_vec();
        plain.extend(length.to_be_bytes());
        plain.extend([0; 4]);
        plain.extend(u32::from(DIGITS).to_be_bytes());
        plain.extend(1_u64.to_be_bytes());
        plain.extend(VALUE_MAX.to_be_bytes());
        plain.extend(1.0_f64.to_be_bytes());
        plain
    };
    assert_eq!(
        refused(&packed(&header(4_000_000_000))),
        "not a histogram: its header does not tell what it is"
    );
    let with = |payload: &[u8]| {
        let mut plain = header(u32::try_from(payload.len()).unwrap());
        plain.extend(payload);
        packed(&plain)
    };
    // The smallest number, which has no opposite.
    assert_eq!(
        refused(&with(&[0xff; 9])),
        "not a histogram: it has more counts than there can be"
    );
    assert_eq!(
        refused(&with(&[0x80])),
        "not a histogram: a count is cut short"
    );
    let mut twice_the_most = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff].repeat(3);
    assert_eq!(
        refused(&with(&twice_the_most)),
        "not a histogram: it has more counts than there can be"
    );
    twice_the_most.truncate(9);
    assert!(Histogram::decode(&with(&twice_the_most)).is_ok());
}

#[test]
fn damaged_texts_never_panic() {
    let mut random = SplitMix64::new(9);
    let text = Histogram::encode(&Histogram::of((0..500).map(|value| value * value)));
    let bytes = STANDARD.decode(text).unwrap();
    let mut refused = 0;
    for _ in 0..5_000 {
        let mut damaged = bytes.clone();
        let at = random.below(damaged.len());
        damaged[at] ^= 1 << random.below(8);
        damaged.truncate(damaged.len() - random.below(4));
        refused += usize::from(Histogram::decode(&STANDARD.encode(damaged)).is_err());
    }
    assert!(refused > 4_000, "{refused}");
}
