//! Requirements of a test setup, checked before its construction, so that a missing one is reported
//! once, with its remedy.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::find;
use crate::{Failure, Namespace};

/// A requirement on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The privilege to create network namespaces, and a kernel that supports them.
    Namespaces,
    /// Virtual Ethernet pairs.
    Veth,
    /// The kernel's bridge.
    Bridge,
    /// IP hooks for bridged packets (`br_netfilter`).
    BridgeHooks,
    /// `/dev/net/tun`, from which switches create their local port.
    Tun,
    /// This `comporta` program, built with DPDK.
    WithDpdk(PathBuf),
    /// A program, and the Debian package that contains it.
    Program {
        /// Its name.
        program: &'static str,
        /// The package.
        package: &'static str,
    },
}

/// A requirement that is not met, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

/// Checks `requirements` in their order.
///
/// # Errors
/// The first one that is not met, in one line with its remedy.
pub fn check(requirements: &[Requirement]) -> Result<(), Missing> {
    requirements
        .iter()
        .try_for_each(|requirement| requirement.check())
}

impl Requirement {
    fn check(&self) -> Result<(), Missing> {
        match self {
            Self::Namespaces => namespaces(),
            Self::Veth => kernel("veth", |namespace| namespace.join("a", namespace, "b")),
            Self::Bridge => kernel("bridge", |namespace| namespace.bridge("a", &[])),
            Self::BridgeHooks if Path::new("/proc/sys/net/bridge").exists() => Ok(()),
            Self::BridgeHooks => Err(Missing(
                "bridged packets do not pass the IP hooks: load the kernel module br_netfilter (modprobe br_netfilter)"
                    .to_owned(),
            )),
            Self::Tun if Path::new("/dev/net/tun").exists() => Ok(()),
            Self::Tun => Err(Missing(
                "/dev/net/tun does not exist: load the kernel module tun (modprobe tun)".to_owned(),
            )),
            Self::WithDpdk(comporta) => with_dpdk(comporta),
            Self::Program { program, .. } if find(program).is_some() => Ok(()),
            Self::Program { program, package } => Err(Missing(format!(
                "{program} is not installed: on Debian, apt-get install {package}"
            ))),
        }
    }
}

fn namespaces() -> Result<(), Missing> {
    if !rustix::process::geteuid().is_root() {
        return Err(Missing(
            "creating network namespaces requires root: run this as root, for example with sudo"
                .to_owned(),
        ));
    }
    Namespace::new().map(drop).map_err(|failure| {
        Missing(format!(
            "{failure}: the kernel must have CONFIG_NET_NS, and a container must grant CAP_SYS_ADMIN and CAP_NET_ADMIN"
        ))
    })
}

/// Runs the program, which reports its DPDK support.
fn with_dpdk(comporta: &Path) -> Result<(), Missing> {
    let output = Command::new(comporta).arg("--version").output();
    let output = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    match output.is_ok_and(|output| output.contains("DPDK")) {
        true => Ok(()),
        false => Err(Missing(format!(
            "{} is built without DPDK: install libdpdk-dev, and build it with \
             cargo build --release --features dpdk",
            comporta.display()
        ))),
    }
}

fn kernel(
    module: &str,
    attempt: impl FnOnce(&Namespace) -> Result<(), Failure>,
) -> Result<(), Missing> {
    Namespace::new()
        .and_then(|namespace| attempt(&namespace))
        .map_err(|failure| {
            Missing(format!(
                "{failure}: load the kernel module {module} (modprobe {module})"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_requirement_is_named_with_its_remedy() {
        let wanted = [Requirement::Program {
            program: "nonesuch",
            package: "nonesuch-tools",
        }];
        assert_eq!(
            check(&wanted).unwrap_err().to_string(),
            "nonesuch is not installed: on Debian, apt-get install nonesuch-tools"
        );
    }
}
