//! What IPFIX has told, of the bridge and of each set of collectors.

use ::flow::IpfixStats;

use super::names::Unreadable;
use super::text::{Known, Text};
use crate::codec::Reader;
use crate::message::Body;

/// Bytes of what is told at once.
pub(super) const LENGTH: usize = 88;

/// Writes what was told of the bridge.
pub(super) fn print_bridge(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    text.push("\n");
    write(&IpfixStats::decode(r)?, "bridge ipfix", text);
    Ok(())
}

/// Writes what was told to each set of collectors.
pub(super) fn print_collectors(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    writeln!(text, " {} ids", r.len() / LENGTH);
    while !r.is_empty() {
        let told = IpfixStats::decode(r)?;
        write(&told, &format!("id {:>3}", told.collectors), text);
    }
    Ok(())
}

fn write(told: &IpfixStats, whose: &str, text: &mut Text<'_>) {
    let IpfixStats {
        flows,
        flows_now,
        sampled,
        failed,
        sent,
        send_failed,
        collectors: _,
    } = told;
    let [flows, flows_now, sent, send_failed] =
        [flows, flows_now, sent, send_failed].map(|count| Known(*count));
    let [sampled, sampled_ipv4, sampled_ipv6] = sampled.map(Known);
    let [failed, failed_ipv4, failed_ipv6] = failed.map(Known);
    write!(
        text,
        "  {whose}: flows={flows}, current flows={flows_now}, "
    );
    write!(
        text,
        "sampled pkts={sampled}, ipv4 ok={sampled_ipv4}, ipv6 ok={sampled_ipv6}, "
    );
    writeln!(text, "tx pkts={sent}");
    let indent = if whose.starts_with("id") { 10 } else { 16 };
    write!(
        text,
        "{:indent$}pkts errs={failed}, ipv4 errs={failed_ipv4}, ",
        ""
    );
    writeln!(text, "ipv6 errs={failed_ipv6}, tx errs={send_failed}");
}
