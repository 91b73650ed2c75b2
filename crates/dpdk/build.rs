//! Compiles the shim against the DPDK that `pkg-config` knows, if the feature asks
//! for it. Without the feature there is nothing to compile and nothing to find.

fn main() {
    #[cfg(feature = "dpdk")]
    shim();
}

#[cfg(feature = "dpdk")]
fn shim() {
    println!("cargo:rerun-if-changed=shim");
    let library = pkg_config::Config::new()
        .atleast_version("22.11")
        .cargo_metadata(false)
        .probe("libdpdk");
    let library = match library {
        Ok(library) => library,
        Err(error) => panic!("DPDK 22.11 or later is needed, as in Debian's libdpdk-dev: {error}"),
    };
    // What the shim itself calls; drivers are loaded by name when it is started.
    const CALLED: [&str; 5] = [
        "rte_eal",
        "rte_ethdev",
        "rte_mbuf",
        "rte_mempool",
        "rte_ring",
    ];
    let mut build = cc::Build::new();
    build
        .file("shim/shim.c")
        .includes(&library.include_paths)
        .flag("-includerte_config.h")
        .flag("-std=gnu11")
        // Its headers use instructions that every machine has on which it runs.
        .flag_if_supported("-march=corei7")
        .define("ALLOW_EXPERIMENTAL_API", None)
        .opt_level(3)
        .warnings(true)
        .extra_warnings(true)
        // Its headers are not ours to mend.
        .flag("-Wno-unused-parameter");
    build.compile("comporta_dpdk_shim");
    for path in &library.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    for name in CALLED {
        println!("cargo:rustc-link-lib=dylib={name}");
    }
}
