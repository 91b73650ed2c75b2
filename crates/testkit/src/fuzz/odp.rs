//! The fuzz target of datapath flows.

use base::PortNo;
use packet::Frame;
use switch::odp::OdpFlow;

/// The longest text, which keeps a run short.
const TEXT_MAX: usize = 4096;

/// Parses a datapath flow, and composes frames and matches of it.
pub fn odp(data: &[u8]) {
    let Some(text) = std::str::from_utf8(data)
        .ok()
        .filter(|text| text.len() <= TEXT_MAX)
    else {
        return;
    };
    let named = |name: &str| (name == "p1").then_some(1);
    let Ok(flow) = OdpFlow::parse(text, named) else {
        return;
    };
    let fields = flow.frame_fields();
    let bare = fields.frame(0);
    assert!(bare.len() <= fields.frame(64).len());
    for len in [bare.len(), bare.len() + 9] {
        let frame = fields.frame_of_len(len);
        assert_eq!(frame.as_ref().map(Frame::len), Some(len));
    }
    let _ = flow.to_match(|number| Some(PortNo(number)));
    if let Some(tunnel) = &flow.tunnel {
        // Its text is a tunnel again, with the same values.
        let text = format!("tunnel({})", tunnel.text());
        let again = OdpFlow::parse(&text, named).expect("it is written so");
        let again = again.tunnel.expect("it has a tunnel");
        assert_eq!(again.text(), tunnel.text());
    }
}
