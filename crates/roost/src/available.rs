//! Memory available to the process: that of the machine, or less under a Linux control group (containers, systemd
//! units). The kernel kills a process that exceeds it.

use std::fs;
use std::path::Path;

/// Available memory in bytes; `None` if the operating system does not report it.
pub(crate) fn memory() -> Option<u64> {
    memory_under(Path::new("/"), of_machine())
}

fn memory_under(root: &Path, of_machine: Option<u64>) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| {
        // A line has number, controllers and path. Version 2 has one line, without controllers.
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (mounted, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        };
        let counts = controllers.is_empty() || controllers.split(',').any(|name| name == "memory");
        counts.then(|| group_limit(&root.join(mounted), path, file)).flatten()
    });
    limits.chain(of_machine).min()
}

/// Smallest limit of a group and its ancestors. In a container, the root may already be the process's own group; `path`
/// then does not exist.
fn group_limit(mounted: &Path, path: &str, file: &str) -> Option<u64> {
    let group = Path::new(path.trim_start_matches('/'));
    let limits = group.ancestors().filter_map(|group| {
        // Version 2 writes "max" for no limit.
        fs::read_to_string(mounted.join(group).join(file)).ok()?.trim().parse().ok()
    });
    limits.min()
}

/// Memory of the machine. Read with a system call, because systemd units may hide `/proc/meminfo`.
#[cfg(target_os = "linux")]
fn of_machine() -> Option<u64> {
    let info = rustix::system::sysinfo();
    Some(info.totalram * u64::from(info.mem_unit))
}

#[cfg(not(target_os = "linux"))]
fn of_machine() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// Available memory of a machine of 4 GiB with these files.
    fn memory_with(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        memory_under(root.path(), Some(4 * GIB))
    }

    #[test]
    fn the_least_limit_of_machine_and_groups_counts() {
        let unit = ("proc/self/cgroup", "0::/system.slice/roost.service\n");
        let limit = |path, text| (path, text);
        let of_unit = "sys/fs/cgroup/system.slice/roost.service/memory.max";
        let of_slice = "sys/fs/cgroup/system.slice/memory.max";
        assert_eq!(memory_with(&[]), Some(4 * GIB));
        assert_eq!(memory_with(&[unit, limit(of_unit, "max\n")]), Some(4 * GIB));
        assert_eq!(memory_with(&[unit, limit(of_unit, "1073741824\n")]), Some(GIB));
        let both = [unit, limit(of_unit, "3221225472"), limit(of_slice, "2147483648")];
        assert_eq!(memory_with(&both), Some(2 * GIB));
        // A container sees its own group as the root, in both versions.
        let inside = limit("sys/fs/cgroup/memory.max", "1073741824\n");
        assert_eq!(memory_with(&[("proc/self/cgroup", "0::/\n"), inside]), Some(GIB));
        let old = ("proc/self/cgroup", "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/\n");
        let inside = limit("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
        assert_eq!(memory_with(&[old, inside]), Some(GIB));
        let unlimited = limit("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(memory_with(&[old, unlimited]), Some(4 * GIB));
    }
}
