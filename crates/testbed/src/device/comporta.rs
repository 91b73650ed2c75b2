//! This project's switch, as a process: one bridge, two numbered ports, nothing
//! but the controller's rules.

use super::{Device, DeviceOptions, PORTS, version};
use crate::{DeviceKind, Failure, Namespace, Program, Spawner};

pub(super) fn start(
    spawner: &Spawner,
    inside: &Namespace,
    options: &DeviceOptions,
) -> Result<Device, Failure> {
    let cores: Vec<String> = options.cores.iter().map(usize::to_string).collect();
    let ports = PORTS.iter().zip(1..);
    let program = Program::new(&options.comporta)
        .args(["switch", "--bridge", "br0"])
        .args(
            ports
                .flat_map(|(name, number)| ["--port".to_owned(), port(options.kind, name, number)]),
        )
        .args(["--fail-mode", "secure"])
        .args(["--controller".to_owned(), options.controller()])
        .args(["--cores".to_owned(), cores.join(",")])
        .arg("--rundir")
        .arg(&options.directory)
        .inside(inside)
        .on_cores(&options.cores)
        .log(options.file("comporta.log"));
    let process = spawner.start(program)?;
    Ok(Device {
        kind: options.kind,
        version: version(spawner, &options.comporta.to_string_lossy(), options)?,
        commands: vec![process.command_line().to_owned()],
        thread: None,
        forwarding: Some(process),
        helpers: Vec::new(),
    })
}

/// A port as its user asks for it.
fn port(kind: DeviceKind, name: &str, number: u32) -> String {
    match kind {
        DeviceKind::ComportaXdp => format!("xdp:{name}={number}"),
        DeviceKind::ComportaDpdk => format!("dpdk:net_af_packet{number}={number},iface={name}"),
        DeviceKind::ComportaTap => format!("tap:{name}={number}"),
        _ => format!("{name}={number}"),
    }
}
