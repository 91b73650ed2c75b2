//! The statistics of IPFIX export, of the bridge and of each collector set.

use ::flow::IpfixStats;

use super::refusal_names::DecodeErrorName;
use super::text::{OptionalCount, PrintBuffer};
use crate::codec::Reader;
use crate::message::WireFormat;

/// Bytes of an entry.
pub(super) const LENGTH: usize = 88;

/// Writes the statistics of the bridge's export.
pub(super) fn print_bridge(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    text.push("\n");
    write(&IpfixStats::decode(r)?, "bridge ipfix", text);
    Ok(())
}

/// Writes the statistics of each collector set.
pub(super) fn print_collectors(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    writeln!(text, " {} ids", r.len() / LENGTH);
    while !r.is_empty() {
        let stats = IpfixStats::decode(r)?;
        write(&stats, &format!("id {:>3}", stats.collectors), text);
    }
    Ok(())
}

fn write(stats: &IpfixStats, scope: &str, text: &mut PrintBuffer<'_>) {
    let IpfixStats {
        flows,
        flows_now,
        sampled,
        failed,
        sent,
        send_failed,
        collectors: _,
    } = stats;
    let [flows, flows_now, sent, send_failed] =
        [flows, flows_now, sent, send_failed].map(|count| OptionalCount(*count));
    let [sampled, sampled_ipv4, sampled_ipv6] = sampled.map(OptionalCount);
    let [failed, failed_ipv4, failed_ipv6] = failed.map(OptionalCount);
    write!(
        text,
        "  {scope}: flows={flows}, current flows={flows_now}, "
    );
    write!(
        text,
        "sampled pkts={sampled}, ipv4 ok={sampled_ipv4}, ipv6 ok={sampled_ipv6}, "
    );
    writeln!(text, "tx pkts={sent}");
    let indent = if scope.starts_with("id") { 10 } else { 16 };
    write!(
        text,
        "{:indent$}pkts errs={failed}, ipv4 errs={failed_ipv4}, ",
        ""
    );
    writeln!(text, "ipv6 errs={failed_ipv6}, tx errs={send_failed}");
}
