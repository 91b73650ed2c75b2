//! Limits of a controller's state and of one packet's work, each with its reason.

/// Limits of the state that controllers build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of rules in all tables.
    pub rules: usize,
    /// Maximum number of rules in one table.
    pub rules_per_table: usize,
    /// Maximum number of groups.
    pub groups: usize,
    /// Maximum number of buckets of all groups.
    pub buckets: usize,
    /// Maximum number of meters.
    pub meters: usize,
}

impl Limits {
    /// A million rules and some more: more than a full routing table. At 300 bytes each, and one or
    /// two kilobytes for distinct instructions, it bounds the memory of flow-mods.
    pub const RULES: usize = 1 << 20;

    /// The number of rules that a table reports at most, which is that of Open vSwitch. A table has
    /// at least this size unless the operator limits it.
    pub const RULES_REPORTED: usize = 1_000_000;

    /// A group for each neighbour of a large router, several times over. It bounds the memory of
    /// group-mods; a features reply has the number of group ids.
    pub const GROUPS: usize = 65_536;

    /// Four for each group. At half a kilobyte each, it bounds the memory of group-mods.
    pub const BUCKETS: usize = 4 * Self::GROUPS;

    /// A meter for each subscriber of a large access switch.
    pub const METERS: usize = 65_536;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rules: Self::RULES,
            rules_per_table: Self::RULES,
            groups: Self::GROUPS,
            buckets: Self::BUCKETS,
            meters: Self::METERS,
        }
    }
}

/// Number of `tun_metadata` fields, as in Open vSwitch (`ovs-fields(7)`, "Tunnel Metadata").
pub(crate) const TLV_FIELDS: u16 = 64;

const _: () = assert!(TLV_FIELDS as usize == flow::field::TUNNEL_OPTIONS);

/// Maximum length of one option's value in bytes: Geneve encodes it as five bits, in units of four
/// bytes.
pub(crate) const TLV_LENGTH_MAX: u8 = 124;

const _: () = assert!(TLV_LENGTH_MAX as usize == flow::field::TUNNEL_OPTION_BYTES);

/// Maximum length of all mapped values together in bytes: the capacity of Geneve headers, and as in
/// Open vSwitch.
pub(crate) const TLV_SPACE_MAX: u32 = 256;

/// Maximum number of actions of a rule or packet-out: as many of the shortest, with eight bytes, as
/// a message holds, so that the length of messages is the only limit, as in Open vSwitch. A packet
/// leaves at most this often in each table.
pub(crate) const ACTIONS_MAX: usize = 8192;

/// Maximum number of actions of an action set: it holds one action of each kind, and all actions
/// that write fields.
pub(crate) const ACTION_SET_MAX: usize = 1024;

/// Maximum number of buckets of one group: a select group examines each of them for each packet.
pub(crate) const BUCKETS_PER_GROUP_MAX: usize = 1024;

/// Maximum number of actions of a bucket. An action set holds one action of each kind, and there
/// are fewer kinds and fields.
pub(crate) const BUCKET_ACTIONS_MAX: usize = 128;

/// Maximum length of a chain of groups.
pub(crate) const CHAIN_MAX: usize = 16;

/// Maximum number of buckets that one packet executes or tests for liveness. Groups that send to
/// several groups multiply the work: a chain of sixteen `all` groups with two buckets each exceeds
/// this.
pub const BUCKETS_PER_FRAME_MAX: u32 = 16_384;

/// Maximum number of results of one packet: outputs, dropped outputs and requests of `learn`, each
/// kind by itself. Resubmissions, groups and outputs to all ports multiply them; a packet with more
/// is dropped whole.
pub const OUTPUTS_PER_FRAME_MAX: usize = 16_384;

/// Maximum number of actions of the rules and buckets that one packet executes: eight full
/// messages. A packet with more is dropped whole.
pub const ACTIONS_PER_FRAME_MAX: usize = 65_536;

/// Maximum number of bands of a meter: every packet is submitted to each.
pub(crate) const BANDS_MAX: u8 = 8;

/// Maximum number of rules that one call of `expire` removes, so that a table that expires at once
/// does not delay the control thread's other work.
pub(crate) const EXPIRIES_MAX: usize = 1024;

/// Maximum nesting of resubmissions that do not lead to a later table (`ovs-actions(7)`, "Recursion
/// too deep").
pub const RECURSION_MAX: usize = 64;

/// Maximum number of lookups of a packet beyond the first (`ovs-actions(7)`, "Too many resubmits").
pub const RESUBMITS_MAX: usize = 4096;

/// Maximum nesting of resubmissions of any kind and clones: through all tables, and back as often
/// as is permitted. Each takes stack memory.
pub const NESTING_MAX: usize = 320;

/// Maximum number of stack entries of `push`: 64 kB of ordinary ones (`ovs-actions(7)`, "Stack too
/// deep"), and 512 kB of memory, since an entry may be as wide as a tunnel option.
pub(crate) const STACK_MAX: usize = 4096;

/// Maximum number of MPLS labels of a packet to which one may be added, as in Open vSwitch
/// (`FLOW_MAX_MPLS_LABELS`): rules that push in circles end.
pub(crate) const MPLS_LABELS_MAX: usize = 3;
