//! Compiles the shim against the DPDK that `pkg-config` finds, if the feature `dpdk` is enabled.
//! Without the feature there is nothing to compile.

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
    // The libraries that the shim calls; drivers are loaded by name at run time.
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
        // DPDK's headers use SSE4.2, which every supported machine has.
        .flag_if_supported("-march=corei7")
        .define("ALLOW_EXPERIMENTAL_API", None)
        .opt_level(3)
        .warnings(true)
        .extra_warnings(true)
        // DPDK's headers cause this warning.
        .flag("-Wno-unused-parameter");
    build.compile("comporta_dpdk_shim");
    for path in &library.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    for name in CALLED {
        println!("cargo:rustc-link-lib=dylib={name}");
    }
}
