//! Snoop clients receive whole messages for any split of the bytes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Returns a message with a body of this length.
fn message(body: u8) -> Vec<u8> {
    let mut message = vec![4, 0, 0, 8 + body, 0, 0, 0, body];
    message.resize(8 + usize::from(body), 0x55);
    message
}

proptest! {
    #[test]
    fn snoop_messages_are_whole_for_any_split(
        bodies in vec(0_u8..60, 1..20),
        cuts in vec(1_usize..40, 1..60),
        unheard in 0_usize..60,
    ) {
        let messages: Vec<_> = bodies.into_iter().map(message).collect();
        let stream = messages.concat();
        let feed = SnoopFeed::default();
        let mut snoop_decoder = SnoopDecoder::new(feed.clone());
        let (before, mut rest) = stream.split_at(unheard.min(stream.len()));
        snoop_decoder.decode(before);
        let mut heard = feed.0.subscribe();
        for cut in cuts.into_iter().cycle() {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            snoop_decoder.decode(now);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        // Messages that began before the subscription are not sent.
        let mut start = 0;
        for message in &messages {
            if start >= before.len() {
                prop_assert_eq!(&*heard.try_recv().unwrap(), &message[..]);
            }
            start += message.len();
        }
        prop_assert!(heard.try_recv().is_err());
    }
}

#[test]
fn snoop_survives_impossible_length() {
    let mut snoop_decoder = SnoopDecoder::new(SnoopFeed::default());
    snoop_decoder.decode(&[0; 1000]);
    assert_eq!(snoop_decoder.received(), 0);
}
