//! Columns of the schema, and the tests that show what becomes of them.

/// A table, some of its columns, and tests.
#[rustfmt::skip]
pub(super) const COLUMNS: &[(&str, &str, &str)] = &[
    ("Open_vSwitch", "bridges", "bridges_ports_and_controllers_are_those_of_the_database"),
    ("Open_vSwitch", "next_cfg cur_cfg", "ovs_vsctl_waits_and_hears_what_cannot_be a_number_that_grows_is_confirmed_though_nothing_else_changed"),
    ("Open_vSwitch", "other_config", "frames_wait_for_rules_that_are_to_be_restored the_host_is_told_of_where_that_is_wanted what_asks_nothing_here_changes_nothing"),
    ("Open_vSwitch", "statistics system_type system_version datapath_types iface_types", "the_host_is_told_of_where_that_is_wanted"),
    ("Open_vSwitch", "ovs_version dpdk_initialized", "ovs_ctl_restart_keeps_the_rules how_things_are_is_written_once_and_then_only_what_is_new"),
    ("Open_vSwitch", "db_version dpdk_version datapaths manager_options external_ids", "what_is_others_is_left_alone"),
    ("Open_vSwitch", "ssl", "a_controller_by_tls_is_known_by_its_authority"),

    ("Bridge", "name ports controller", "bridges_ports_and_controllers_are_those_of_the_database a_name_that_cannot_be_is_refused_with_all_below_it"),
    ("Bridge", "fail_mode protocols datapath_id", "a_bridge_stays_while_its_mode_versions_and_id_change"),
    ("Bridge", "datapath_type datapath_version", "what_asks_nothing_here_changes_nothing"),
    ("Bridge", "status other_config auto_attach", "what_is_not_honoured_is_said_by_its_name"),
    ("Bridge", "stp_enable rstp_enable mcast_snooping_enable mirrors netflow sflow ipfix", "ovs_vsctl_waits_and_hears_what_cannot_be what_a_bridge_and_its_controllers_ask_in_vain_is_said"),
    ("Bridge", "flood_vlans", "native_vlans_protected_ports_and_bridges_in_a_vlan what_a_bridge_is_told_of_its_stations_is_read"),
    ("Bridge", "flow_tables", "tables_are_named_and_limited_by_the_database"),
    ("Bridge", "external_ids rstp_status", "what_is_others_is_left_alone"),

    ("Port", "name", "bridges_ports_and_controllers_are_those_of_the_database"),
    ("Port", "tag trunks", "access_ports_reach_their_vlan_and_trunks_carry_its_tag what_a_port_is_to_normal_is_read_by_the_modes_of_the_manual"),
    ("Port", "vlan_mode fake_bridge protected", "native_vlans_protected_ports_and_bridges_in_a_vlan"),
    ("Port", "interfaces cvlans", "a_port_that_would_forward_what_it_must_not_is_refused"),
    ("Port", "qos", "what_is_to_leave_too_fast_is_dropped"),
    ("Port", "bond_mode lacp bond_updelay bond_downdelay bond_active_slave bond_fake_iface mac other_config", "a_port_that_would_forward_what_it_must_not_is_refused"),
    ("Port", "status rstp_status rstp_statistics statistics external_ids", "what_is_others_is_left_alone"),

    ("Interface", "name ofport error", "ovs_vsctl_waits_and_hears_what_cannot_be"),
    ("Interface", "type options", "what_an_interface_asks_in_vain_is_said ten_bridges_of_the_database_are_joined_by_patches"),
    ("Interface", "ofport_request", "bridges_ports_and_controllers_are_those_of_the_database who_runs_keeps_its_number_and_who_asks_gets_a_free_one"),
    ("Interface", "mac mac_in_use mtu mtu_request", "interfaces_are_given_lengths_and_addresses"),
    ("Interface", "ingress_policing_rate ingress_policing_burst ingress_policing_kpkts_rate ingress_policing_kpkts_burst", "what_comes_too_fast_is_not_taken so_many_bits_and_frames_come_in_and_no_more"),
    ("Interface", "link_state link_resets link_speed duplex status", "an_interface_tells_how_its_link_is"),
    ("Interface", "admin_state ifindex statistics", "ovs_vsctl_waits_and_hears_what_cannot_be how_things_are_is_written_once_and_then_only_what_is_new the_databases_own_client_follows_what_becomes_of_ports"),
    ("Interface", "bfd cfm_mpid lldp other_config", "what_is_not_honoured_is_said_by_its_name"),
    ("Interface", "bfd_status cfm_remote_mpids cfm_flap_count cfm_fault cfm_fault_status cfm_remote_opstate cfm_health lacp_current external_ids", "what_is_others_is_left_alone"),

    ("Flow_Table", "name flow_limit overflow_policy groups", "tables_are_named_and_limited_by_the_database"),
    ("Flow_Table", "prefixes external_ids", "what_asks_nothing_here_changes_nothing"),

    ("QoS", "type other_config", "what_is_to_leave_too_fast_is_dropped"),
    ("QoS", "queues external_ids", "what_asks_nothing_here_changes_nothing"),
    ("Queue", "dscp other_config external_ids", "what_asks_nothing_here_changes_nothing"),

    ("Mirror", "name select_all select_src_port select_dst_port select_vlan output_port output_vlan snaplen statistics external_ids", "what_a_bridge_and_its_controllers_ask_in_vain_is_said"),
    ("NetFlow", "targets engine_type engine_id add_id_to_interface active_timeout external_ids", "what_a_bridge_and_its_controllers_ask_in_vain_is_said"),
    ("sFlow", "targets sampling polling header agent external_ids", "what_a_bridge_and_its_controllers_ask_in_vain_is_said"),
    ("IPFIX", "targets sampling obs_domain_id obs_point_id cache_active_timeout cache_max_flows other_config external_ids", "what_a_bridge_and_its_controllers_ask_in_vain_is_said"),
    ("Flow_Sample_Collector_Set", "id bridge ipfix external_ids", "what_a_bridge_and_its_controllers_ask_in_vain_is_said"),

    ("Controller", "target", "bridges_ports_and_controllers_are_those_of_the_database a_peer_that_comes_by_tls_must_show_who_it_is"),
    ("Controller", "max_backoff inactivity_probe", "a_controller_is_sought_and_asked_as_often_as_the_database_says what_is_not_honoured_is_said_by_its_name"),
    ("Controller", "enable_async_messages", "a_controller_that_is_not_to_be_told_is_told_nothing"),
    ("Controller", "connection_mode local_ip local_netmask local_gateway controller_queue_size type", "what_is_not_honoured_is_said_by_its_name"),
    ("Controller", "other_config", "a_controller_is_sought_and_asked_as_often_as_the_database_says"),
    ("Controller", "controller_rate_limit controller_burst_limit", "controllers_have_one_rate_or_each_its_own controllers_are_sent_as_many_frames_as_each_may_have"),
    ("Controller", "is_connected role status", "why_a_controller_is_not_there_is_said"),
    ("Controller", "external_ids", "what_is_others_is_left_alone"),

    ("SSL", "private_key certificate ca_cert external_ids", "a_controller_by_tls_is_known_by_its_authority"),
    ("SSL", "bootstrap_ca_cert", "an_authority_is_learned_from_the_first_controller"),
    ("SSL", "ssl_protocols ssl_ciphers ssl_ciphersuites", "a_controller_by_tls_is_known_by_its_authority"),

    ("Manager", "target max_backoff inactivity_probe connection_mode other_config external_ids is_connected status", "what_is_others_is_left_alone"),
    ("Datapath", "datapath_version ct_zones capabilities external_ids", "what_is_others_is_left_alone"),
    ("CT_Zone", "timeout_policy external_ids", "what_is_others_is_left_alone"),
    ("CT_Timeout_Policy", "timeouts external_ids", "what_is_others_is_left_alone"),
    ("AutoAttach", "system_name system_description mappings", "what_is_not_honoured_is_said_by_its_name"),
];
