//! Files that a privileged process writes in directories of less privileged users: opened without
//! following a symbolic link, and only if no other name leads to them.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

/// Opens or creates a file with these flags; a new one has this mode.
pub(crate) fn open_private(path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
    let flags = flags | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match open(path, flags, mode) {
        Err(Errno::LOOP) => return Err(io::Error::other("the file is a symbolic link")),
        opened => File::from(opened?),
    };
    let links = link_count(&file)?;
    if links > 1 {
        return Err(io::Error::other(format!("the file has {links} names")));
    }
    Ok(file)
}

/// Returns the number of names of a regular file; zero for a removed file and for devices.
fn link_count(file: &File) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata()?;
    Ok(if metadata.is_file() {
        metadata.nlink()
    } else {
        0
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_refused_and_their_targets_stay() {
        let name = format!("comporta-private-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).expect("a writable directory");
        let open_in = |name: &str| {
            let mode = Mode::from_raw_mode(0o640);
            open_private(&directory.join(name), OFlags::WRONLY | OFlags::APPEND, mode)
        };
        let precious = directory.join("precious");
        fs::write(&precious, "secret").expect("a writable directory");
        symlink(&precious, directory.join("symbolic")).expect("a free name");
        fs::hard_link(&precious, directory.join("hard")).expect("a free name");
        for (name, problem) in [("symbolic", "symbolic link"), ("hard", "2 names")] {
            let error = open_in(name).expect_err("a link");
            assert!(error.to_string().contains(problem), "{name}: {error}");
        }
        assert_eq!(fs::read_to_string(&precious).expect("it exists"), "secret");
        open_in("new")
            .and_then(|mut file| file.write_all(b"text"))
            .expect("a file of its own");
        assert!(open_in("new").is_ok(), "it is opened again");
        fs::remove_dir_all(&directory).expect("it exists");
    }
}
