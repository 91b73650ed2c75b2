//! Rewrites of a walk, simplified when it is recorded: a tag that is pushed and popped again leaves
//! nothing, and the rewrites of a router become one effect.

use packet::PlainHop;

use super::walk::WalkEffect;
use crate::header_rewrite::HeaderRewrite;

/// An effect, and the tags that a packet without tags has before it; `None` if that is unknown.
type EffectAtDepth = (WalkEffect, Option<usize>);

/// Simplifies the effects on an untagged packet of IP.
pub(super) fn simplify(effects: Vec<WalkEffect>) -> Vec<WalkEffect> {
    join_hops(without_passing_tags(effects))
}

/// Removes tags that are pushed and popped with nothing but rewrites in between.
fn without_passing_tags(effects: Vec<WalkEffect>) -> Vec<EffectAtDepth> {
    let mut kept: Vec<EffectAtDepth> = Vec::with_capacity(effects.len());
    let mut depth = Some(0_usize);
    // Depths of the packets of which copies are made.
    let mut outer = Vec::new();
    for effect in effects {
        let before = depth;
        match &effect {
            WalkEffect::BeginCopy => outer.push(depth),
            WalkEffect::EndCopy => depth = outer.pop().unwrap_or(None),
            WalkEffect::Rewrite(HeaderRewrite::PushVlan(_)) => {
                depth = depth.map(|depth| depth + 1);
            }
            WalkEffect::Rewrite(HeaderRewrite::PopVlan) => {
                depth = depth.map(|depth| depth.saturating_sub(1));
                if depth.is_some() && remove_pushed(&mut kept) {
                    continue;
                }
            }
            // An untagged packet gets a tag.
            WalkEffect::Rewrite(HeaderRewrite::TagVid(_) | HeaderRewrite::TagPcp(_))
                if depth == Some(0) =>
            {
                depth = None;
            }
            _ => {}
        }
        kept.push((effect, before));
    }
    kept
}

/// Removes the last push of a tag, and the rewrites of this tag, if there are only rewrites after
/// it. Returns false if there is none.
fn remove_pushed(kept: &mut Vec<EffectAtDepth>) -> bool {
    let is_rewrite = |(effect, _): &&EffectAtDepth| matches!(effect, WalkEffect::Rewrite(_));
    let run = kept.iter().rev().take_while(is_rewrite).count();
    let first = kept.len() - run;
    let is_push = |(effect, _): &EffectAtDepth| {
        matches!(effect, WalkEffect::Rewrite(HeaderRewrite::PushVlan(_)))
    };
    let Some(position) = kept[first..].iter().rposition(is_push) else {
        return false;
    };
    let of_tag = kept.split_off(first + position);
    let depth = of_tag.first().and_then(|(_, depth)| *depth);
    let is_other = |(effect, _): &EffectAtDepth| {
        !matches!(
            effect,
            WalkEffect::Rewrite(
                HeaderRewrite::PushVlan(_)
                    | HeaderRewrite::VlanVid(_)
                    | HeaderRewrite::VlanPcp(_)
                    | HeaderRewrite::TagVid(_)
                    | HeaderRewrite::TagPcp(_)
            )
        )
    };
    let others = of_tag.into_iter().filter(is_other);
    kept.extend(others.map(|(effect, _)| (effect, depth)));
    true
}

/// Replaces adjacent rewrites by one effect, if they are those of a router.
fn join_hops(effects: Vec<EffectAtDepth>) -> Vec<WalkEffect> {
    let mut joined = Vec::with_capacity(effects.len());
    let mut run = Vec::new();
    for (effect, depth) in effects {
        match effect {
            WalkEffect::Rewrite(rewrite) => run.push((rewrite, depth)),
            other => {
                end_run(&mut run, &mut joined);
                joined.push(other);
            }
        }
    }
    end_run(&mut run, &mut joined);
    joined
}

fn end_run(run: &mut Vec<(HeaderRewrite, Option<usize>)>, joined: &mut Vec<WalkEffect>) {
    match hop_of(run) {
        Some(hop) => joined.push(WalkEffect::Hop(hop)),
        None => joined.extend(run.iter().map(|(rewrite, _)| WalkEffect::Rewrite(*rewrite))),
    }
    run.clear();
}

/// Returns the rewrites as those of a router, if they are.
fn hop_of(run: &[(HeaderRewrite, Option<usize>)]) -> Option<PlainHop> {
    let mut hop = PlainHop::default();
    if run.is_empty() {
        return None;
    }
    for (rewrite, depth) in run {
        match rewrite {
            _ if *depth != Some(0) => return None,
            HeaderRewrite::EthDst(address) => hop.eth_dst = Some(*address),
            HeaderRewrite::EthSrc(address) => hop.eth_src = Some(*address),
            HeaderRewrite::DecTtl if !hop.dec_ttl => hop.dec_ttl = true,
            _ => return None,
        }
    }
    Some(hop)
}

#[cfg(test)]
mod tests {
    use base::PortNo;
    use packet::MacAddr;

    use super::*;

    fn simplified(effects: &[HeaderRewrite]) -> Vec<WalkEffect> {
        let mut effects: Vec<_> = effects.iter().copied().map(WalkEffect::Rewrite).collect();
        effects.push(WalkEffect::Send(PortNo(1)));
        let mut effects = simplify(effects);
        assert!(matches!(effects.pop(), Some(WalkEffect::Send(PortNo(1)))));
        effects
    }

    #[test]
    fn passing_tags_are_removed() {
        use HeaderRewrite::{DecTtl, Dscp, EthDst, PopVlan, PushVlan, TagVid, VlanVid};
        let address = MacAddr([2, 0, 0, 0, 0, 1]);
        let route = [
            PushVlan(0x8100),
            VlanVid(5),
            EthDst(address),
            DecTtl,
            VlanVid(6),
            PopVlan,
        ];
        let hop = PlainHop {
            eth_dst: Some(address),
            eth_src: None,
            dec_ttl: true,
        };
        assert!(matches!(&simplified(&route)[..], [WalkEffect::Hop(one)] if *one == hop));
        assert!(simplified(&[PushVlan(0x8100), TagVid(5), PopVlan]).is_empty());
        let nested = [
            PushVlan(0x88a8),
            PushVlan(0x8100),
            VlanVid(3),
            PopVlan,
            PopVlan,
        ];
        assert!(simplified(&nested).is_empty());
        for kept in [
            &[PushVlan(0x8100), VlanVid(5), EthDst(address)][..],
            &[TagVid(5), PopVlan],
            &[TagVid(5), EthDst(address)],
            &[EthDst(address), Dscp(1)],
            &[DecTtl, DecTtl],
        ] {
            assert_eq!(simplified(kept).len(), kept.len(), "{kept:?}");
        }
    }

    #[test]
    fn tags_of_copies_are_kept() {
        let pop = || WalkEffect::Rewrite(HeaderRewrite::PopVlan);
        let effects = vec![
            WalkEffect::Rewrite(HeaderRewrite::PushVlan(0x8100)),
            WalkEffect::BeginCopy,
            pop(),
            WalkEffect::Send(PortNo(1)),
            WalkEffect::EndCopy,
            pop(),
            WalkEffect::Send(PortNo(2)),
        ];
        assert_eq!(simplify(effects).len(), 7);
    }
}
