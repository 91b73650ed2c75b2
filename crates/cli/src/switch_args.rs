//! The arguments of `comporta switch`, and their translation into a configuration. Options of a
//! bridge follow its `--bridge`, so their order is significant.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use config::{
    BridgeConfig, Config, ConfigError, FailMode, Tls, parse_datapath_id, parse_protocols,
};
use vswitchd::SyscallFilter;

/// Options of the preceding bridge.
const OF_A_BRIDGE: [&str; 12] = [
    "port",
    "controller",
    "auxiliary",
    "listen",
    "fail-mode",
    "datapath-id",
    "protocols",
    "flow-limit",
    "packet-in-rate",
    "controller-rate-limit",
    "controller-burst-limit",
    "affinity",
];

/// Returns the subcommand.
pub(crate) fn command() -> Command {
    let of_a_bridge = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name(value)
            .help(help)
            .action(ArgAction::Append)
    };
    Command::new("switch")
        .about("Run an OpenFlow switch on this machine's interfaces")
        .after_help(
            "Options of a bridge follow its --bridge; --port, --controller and --listen are \
             repeatable.\n\n\
             SIGTERM and SIGINT end the switch; SIGHUP reads the --config file again. Ports require root or \
             CAP_NET_ADMIN and CAP_NET_RAW.\n\n\
             Examples:\n  \
             comporta switch --bridge br0 --port eth1 --port eth2=7\n  \
             comporta switch --bridge br0 --port eth1 --controller tcp:127.0.0.1:6653 --fail-mode secure\n  \
             comporta switch --cores 2,3 --config /etc/comporta/comporta.toml",
        )
        .arg(of_a_bridge("bridge", "NAME", "A bridge; its LOCAL port is an interface of this name"))
        .arg(of_a_bridge("port", "PORT", "INTERFACE[=NUMBER], xdp:INTERFACE[,MODE..][=NUMBER] by AF_XDP, dpdk:DEVICE[=NUMBER][,ARGUMENT..] for a device of DPDK, tap:NAME[=NUMBER] for a new TAP interface, or replay:NAME[,FILE][=NUMBER] to measure"))
        .arg(of_a_bridge("controller", "TARGET", "Connect to a controller: tcp:HOST[:PORT], ssl:HOST[:PORT] or unix:PATH; the default port is 6653"))
        .arg(of_a_bridge("auxiliary", "COUNT", "Further connections to each controller, 0 to 16 [default: 0]"))
        .arg(of_a_bridge("listen", "SOCKET", "Listen for tools and controllers: ptcp:[PORT][:ADDRESS], pssl:[PORT][:ADDRESS] or punix:PATH; the default is port 6653 of all addresses"))
        .arg(of_a_bridge("fail-mode", "MODE", "Without a controller: standalone (forward as a learning switch) or secure (follow the rules only) [default: standalone]"))
        .arg(of_a_bridge("datapath-id", "ID", "Sixteen hexadecimal digits [default: from the MAC addresses]"))
        .arg(of_a_bridge("protocols", "VERSION,...", "OpenFlow versions, OpenFlow10 to OpenFlow15 [default: all]"))
        .arg(of_a_bridge("flow-limit", "TABLE=RULES", "Maximum number of rules in a table [default: 1000000]"))
        .arg(of_a_bridge("affinity", "PORT=CORE,...", "Cores of the workers that receive from a port [default: all]"))
        .arg(of_a_bridge("packet-in-rate", "RATE[:BURST]", "Limit of packet-ins from each port, in frames per second and burst; or none [default: none]"))
        .arg(of_a_bridge("controller-rate-limit", "RATE", "Limit of packet-ins to each controller, in frames per second [default: no limit]"))
        .arg(of_a_bridge("controller-burst-limit", "FRAMES", "Burst of that limit, in frames [default: a quarter of the rate]"))
        .arg(
            Arg::new("cores")
                .long("cores")
                .value_name("CORE,...")
                .help("Cores for the workers, one each [default: the last core]")
                .value_delimiter(',')
                .value_parser(value_parser!(usize)),
        )
        .arg(
            Arg::new("metrics")
                .long("metrics")
                .value_name("ADDRESS:PORT")
                .help("Serve /metrics for Prometheus on this address, as in 127.0.0.1:9477")
                .value_parser(value_parser!(SocketAddr)),
        )
        .arg(seccomp_arg())
        .arg(path_arg("private-key", "FILE", "The switch's private key, for controllers by ssl: and pssl:"))
        .arg(path_arg("certificate", "FILE", "The switch's certificate"))
        .arg(path_arg("ca-cert", "FILE", "The CA certificate for controllers"))
        .arg(path_arg("bootstrap-ca-cert", "FILE", "Bootstrap: on first connection, save the controller's CA certificate to FILE"))
        .arg(path_arg("config", "FILE", "Read bridges from a TOML file instead"))
        .arg(path_arg("rundir", "DIR", "The directory of the sockets [default: $OVS_RUNDIR or /var/run/openvswitch]"))
}

fn seccomp_arg() -> Arg {
    Arg::new("seccomp")
        .long("seccomp")
        .value_name("ACTION")
        .help("End the process at a system call that a switch does not make, or only log it, or neither: kill, log or off [default: off]")
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("kill")
        // An option of the service's environment file replaces that of its unit.
        .overrides_with("seccomp")
}

fn path_arg(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value)
        .help(help)
        .value_parser(value_parser!(PathBuf))
}

/// The translated arguments.
pub(crate) struct SwitchArgs {
    /// The configuration at the start.
    pub(crate) config: Config,
    /// The file to read again on SIGHUP, if any.
    pub(crate) file: Option<PathBuf>,
    /// The address of the metrics server.
    pub(crate) metrics: Option<SocketAddr>,
    /// The filter of system calls.
    pub(crate) filter: SyscallFilter,
}

impl SwitchArgs {
    pub(crate) fn from_matches(matches: &ArgMatches) -> Result<Self, ConfigError> {
        let bridges = bridges(matches)?;
        let file = matches.get_one::<PathBuf>("config").cloned();
        let mut config = match &file {
            Some(_) if !bridges.is_empty() => {
                let problem = "the file defines the bridges: omit --bridge or --config";
                return Err(ConfigError::new("--config", problem));
            }
            Some(file) => Config::from_file(file)?,
            None => Config {
                bridges,
                ..Config::default()
            },
        };
        if let Some(rundir) = matches.get_one::<PathBuf>("rundir") {
            config.rundir = Some(rundir.clone());
        }
        if let Some(cores) = matches.get_many::<usize>("cores") {
            config.cores = cores.copied().collect();
        }
        if let Some(tls) = tls(matches)? {
            config.tls = Some(tls);
        }
        config.check()?;
        let metrics = matches.get_one("metrics").copied();
        let filter = matches.get_one::<String>("seccomp");
        let filter = filter.map_or(Ok(SyscallFilter::Off), |text| text.parse())?;
        Ok(Self {
            config,
            file,
            metrics,
            filter,
        })
    }
}

/// Returns the keys and certificates for TLS.
fn tls(matches: &ArgMatches) -> Result<Option<Tls>, ConfigError> {
    let file = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    read_tls([
        file("private-key"),
        file("certificate"),
        file("ca-cert"),
        file("bootstrap-ca-cert"),
    ])
}

/// Returns the TLS files: the key, the certificate, and the CA certificate in one of its two forms.
/// All or none must be given.
pub(crate) fn read_tls(files: [Option<PathBuf>; 4]) -> Result<Option<Tls>, ConfigError> {
    let [private_key, certificate, ca_cert, bootstrap] = files;
    if ca_cert.is_some() && bootstrap.is_some() {
        let problem = "conflicts with --ca-cert: give one of them";
        return Err(ConfigError::new("--bootstrap-ca-cert", problem));
    }
    let is_bootstrap = bootstrap.is_some();
    match (private_key, certificate, ca_cert.or(bootstrap)) {
        (None, None, None) => Ok(None),
        (Some(private_key), Some(certificate), Some(ca_cert)) => Ok(Some(Tls {
            private_key,
            certificate,
            ca_cert,
            bootstrap: is_bootstrap,
            peer_ca_cert: None,
        })),
        _ => Err(ConfigError::new(
            "--private-key",
            "TLS requires --private-key, --certificate and --ca-cert (or --bootstrap-ca-cert), all three",
        )),
    }
}

/// Assigns the options to the preceding bridges.
fn bridges(matches: &ArgMatches) -> Result<Vec<BridgeConfig>, ConfigError> {
    let mut options: Vec<(usize, &str, &String)> = std::iter::once("bridge")
        .chain(OF_A_BRIDGE)
        .flat_map(|option| {
            let positions = matches.indices_of(option).into_iter().flatten();
            let values = matches.get_many::<String>(option).into_iter().flatten();
            positions
                .zip(values)
                .map(move |(position, value)| (position, option, value))
        })
        .collect();
    options.sort_unstable();
    let mut bridges: Vec<BridgeConfig> = Vec::new();
    let mut seen = Vec::new();
    for (_, option, value) in options {
        if option == "bridge" {
            bridges.push(BridgeConfig::new(value));
            seen.clear();
            continue;
        }
        let Some(bridge) = bridges.last_mut() else {
            let problem = format!("name its bridge first, as in --bridge br0 --{option} {value}");
            return Err(ConfigError::new(format!("--{option}"), problem));
        };
        apply(bridge, option, value, &mut seen)?;
    }
    Ok(bridges)
}

fn apply<'a>(
    bridge: &mut BridgeConfig,
    option: &'a str,
    value: &str,
    seen: &mut Vec<&'a str>,
) -> Result<(), ConfigError> {
    let once = matches!(
        option,
        "auxiliary"
            | "fail-mode"
            | "datapath-id"
            | "protocols"
            | "packet-in-rate"
            | "controller-rate-limit"
            | "controller-burst-limit"
    );
    if once && seen.contains(&option) {
        let problem = format!("given twice for bridge {}: give it once", bridge.name);
        return Err(ConfigError::new(format!("--{option}"), problem));
    }
    seen.push(option);
    match option {
        "port" => bridge.ports.push(value.parse()?),
        "controller" => bridge.controllers.push(value.parse()?),
        "auxiliary" => bridge.auxiliary = value.parse()?,
        "listen" => bridge.listen.push(value.parse()?),
        "fail-mode" => bridge.fail_mode = value.parse::<FailMode>()?,
        "affinity" => bridge.affinity.push(value.parse()?),
        "flow-limit" => bridge.flow_limits.push(value.parse()?),
        "packet-in-rate" => bridge.packet_in_rate = value.parse()?,
        "controller-rate-limit" => bridge.controller_rate_limit = Some(number(option, value)?),
        "controller-burst-limit" => bridge.controller_burst_limit = Some(number(option, value)?),
        "protocols" => bridge.protocols = parse_protocols(value)?,
        _ => bridge.datapath_id = Some(parse_datapath_id(value)?),
    }
    Ok(())
}

fn number(option: &str, value: &str) -> Result<u32, ConfigError> {
    let invalid = |_| {
        ConfigError::new(
            format!("--{option}"),
            format!("'{value}' is not a number of frames"),
        )
    };
    value.parse().map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Config, String> {
        let words = std::iter::once("switch").chain(line.split_whitespace());
        let matches = command()
            .try_get_matches_from(words)
            .map_err(|error| error.to_string())?;
        SwitchArgs::from_matches(&matches)
            .map(|args| args.config)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn options_belong_to_the_bridge_before_them() {
        let config = parse(
            "--cores 1,2 --bridge br0 --port eth1 --port eth2=7 --listen ptcp:6654 \
             --bridge br1 --fail-mode secure --port eth3 --datapath-id 0000000000000001",
        )
        .expect("legal");
        assert_eq!(config.cores, [1, 2]);
        let ports = |index: usize| {
            config.bridges[index]
                .ports
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            (ports(0), ports(1)),
            ("eth1 eth2=7".to_owned(), "eth3".to_owned())
        );
        assert_eq!(config.bridges[0].fail_mode, FailMode::Standalone);
        assert_eq!(config.bridges[1].fail_mode, FailMode::Secure);
    }

    #[test]
    fn protocols_option_defaults_to_all_versions() {
        let config = parse("--bridge br0 --protocols OpenFlow10,OpenFlow14 --bridge br1");
        let [named, all] = &config.expect("legal").bridges[..] else {
            panic!("two bridges were given");
        };
        let expected = "OpenFlow10,OpenFlow14".parse();
        assert_eq!(Ok(named.protocols), expected);
        assert_eq!(all.protocols, BridgeConfig::new("br1").protocols);
        let error = parse("--bridge br0 --protocols OpenFlow16").expect_err("no such version");
        assert!(error.starts_with("--protocols: 'OpenFlow16' is not a list of versions"));
    }

    #[test]
    fn bridge_option_before_its_bridge_is_an_error() {
        assert_eq!(
            parse("--port eth1 --bridge br0").expect_err("no bridge yet"),
            "--port: name its bridge first, as in --bridge br0 --port eth1"
        );
        assert!(
            parse("")
                .expect_err("no bridge")
                .contains("give at least one bridge")
        );
        assert!(
            parse("--bridge br0 --fail-mode secure --fail-mode secure")
                .expect_err("twice")
                .contains("--fail-mode: given twice for bridge br0")
        );
    }
}
