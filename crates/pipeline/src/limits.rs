//! What a controller may not exceed.

/// How much a controller may build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rules in all tables together.
    pub rules: usize,
    /// Rules in one table.
    pub rules_per_table: usize,
    /// Groups.
    pub groups: usize,
    /// Buckets of all groups together.
    pub buckets: usize,
    /// Meters.
    pub meters: usize,
}

impl Limits {
    /// A million rules and some: what full routing tables come to. At three hundred
    /// bytes each, and a kilobyte or two more for what one does that no other does, they
    /// bound the memory that flow-mods can take.
    pub const RULES: usize = 1 << 20;

    /// A group for each neighbour of a large router, several times over.
    pub const GROUPS: usize = 65_536;

    /// Four for each group, if there are that many. At half a kilobyte each, they
    /// bound the memory that group-mods can take.
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

/// How many fields there are for options of tunnels: as many as with Open vSwitch
/// (`ovs-fields(7)`, "Tunnel Metadata").
pub(crate) const TLV_FIELDS: u16 = 64;

const _: () = assert!(TLV_FIELDS as usize == flow::field::TUNNEL_OPTIONS);

/// The most bytes of an option's value: Geneve's headers tell its length in five bits, as so
/// many words of four bytes.
pub(crate) const TLV_LENGTH_MAX: u8 = 124;

const _: () = assert!(TLV_LENGTH_MAX as usize == flow::field::TUNNEL_OPTION_BYTES);

/// The most bytes of all options' values together: what the headers of Geneve have room
/// for, and as many as with Open vSwitch.
pub(crate) const TLV_SPACE_MAX: u32 = 256;

/// The most actions that a rule or a packet-out may have: an output to every
/// port of a large bridge, with a rewrite before each. A frame may leave so
/// many times in every table, no more often.
pub(crate) const ACTIONS_MAX: usize = 1024;

/// The most actions of an action set, which counts one of a kind but for those that
/// write fields: in the order in which they came, all of them.
pub(crate) const ACTION_SET_MAX: usize = ACTIONS_MAX;

/// The most buckets of one group: a select group looks at each of them for each frame.
pub(crate) const BUCKETS_PER_GROUP_MAX: usize = 1024;

/// The most actions of a bucket. An action set holds one of a kind, and there are
/// fewer kinds and fields.
pub(crate) const BUCKET_ACTIONS_MAX: usize = 128;

/// How often a group's frame can be handed on from group to group, in a row.
pub(crate) const CHAIN_MAX: usize = 16;

/// How many buckets one frame may go through or ask whether they are alive. Groups
/// that send to several groups multiply, and so would the work: a chain of sixteen
/// groups of all, two buckets each, is more than this.
pub const BUCKETS_PER_FRAME_MAX: u32 = 16_384;

/// The most bands of a meter: every frame is submitted to each.
pub(crate) const BANDS_MAX: u8 = 8;

/// The most rules that one call to `expire` removes, so that a table that dies
/// all at once does not keep the control thread from its other duties.
pub(crate) const EXPIRIES_MAX: usize = 1024;

/// How deep resubmissions that do not lead to a later table may lie in one another
/// (`ovs-actions(7)`, "Recursion too deep").
pub(crate) const RECURSION_MAX: usize = 64;

/// How many lookups a frame may have beyond its first (`ovs-actions(7)`, "Too many
/// resubmits").
pub(crate) const RESUBMITS_MAX: usize = 4096;

/// How deep resubmissions of any kind, and clones, may lie in one another: through
/// all tables, and back as often as is allowed. Each takes a piece of the stack.
pub(crate) const NESTING_MAX: usize = 320;

/// The most entries of the stack of `push`: 64 kB of ordinary ones (`ovs-actions(7)`, "Stack too
/// deep"), and 512 kB of memory, since an entry may be as wide as a tunnel option.
pub(crate) const STACK_MAX: usize = 4096;
