//! Control groups of both versions: the process's own group, and all visible groups above it, since any of them may have the
//! tightest limit.
//!
//! A group's files understate the memory that can be had: the page cache counts as used, and the kernel drops it before it
//! kills a process. So pages of files on the inactive and active lists are counted as free here, as in `MemAvailable`.
//!
//! See `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/memory.rst` of the kernel.

use std::fs;
use std::path::{Path, PathBuf};

/// Largest number of groups that are read, for a tree that makes no sense.
const MOST: usize = 32;

/// Control groups of the process.
#[derive(Debug)]
pub(crate) struct Groups {
    list: Vec<Group>,
}

/// Limit of a group, and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Name: `memory.max of /sys/fs/cgroup/app`.
    pub(crate) what: String,
    /// The limit in bytes.
    pub(crate) bytes: u64,
    /// Bytes that can be had: free memory, and what the kernel would take back from caches.
    pub(crate) left: u64,
}

impl Limit {
    /// Returns what is used of it, without what the kernel would take back from caches.
    pub(crate) fn used(&self) -> u64 {
        self.bytes.saturating_sub(self.left)
    }
}

#[derive(Debug)]
struct Group {
    dir: PathBuf,
    version: Version,
    /// Path for users, without the root of tests.
    name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn usage(self) -> &'static str {
        match self {
            Version::One => "memory.usage_in_bytes",
            Version::Two => "memory.current",
        }
    }

    /// Returns the files with limits. Reaching `memory.high` slows the group down to a standstill.
    fn limits(self) -> &'static [&'static str] {
        match self {
            Version::One => &["memory.limit_in_bytes"],
            Version::Two => &["memory.max", "memory.high"],
        }
    }

    /// Returns the fields of memory that the kernel can take back, from the group and all groups below it.
    fn caches(self) -> [&'static str; 2] {
        match self {
            Version::One => ["total_inactive_file", "total_active_file"],
            Version::Two => ["inactive_file", "active_file"],
        }
    }
}

impl Groups {
    /// Looks up the groups in `proc/self/cgroup` below `root`.
    pub(crate) fn find(root: &Path) -> Groups {
        let own = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let mut list: Vec<Group> = Vec::new();
        for line in own.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
                continue;
            };
            let (mount, version) = if controllers.is_empty() {
                ("/sys/fs/cgroup", Version::Two)
            } else if controllers.split(',').any(|one| one == "memory") {
                ("/sys/fs/cgroup/memory", Version::One)
            } else {
                continue;
            };
            for name in upwards(mount, path) {
                let dir = root.join(name.trim_start_matches('/'));
                let known = list.iter().any(|group| group.dir == dir);
                // In a container the path may be the host's, while the group is mounted at the root.
                if !known && list.len() < MOST && dir.join(version.usage()).is_file() {
                    list.push(Group { dir, version, name });
                }
            }
        }
        Groups { list }
    }

    /// Returns the limits of all groups.
    pub(crate) fn limits(&self) -> Vec<Limit> {
        self.list.iter().flat_map(Group::limits).collect()
    }

    /// Returns the limit that has the least left.
    pub(crate) fn tightest(&self) -> Option<Limit> {
        self.limits().into_iter().min_by_key(|limit| limit.left)
    }

    /// Returns the bytes charged to the process's own group, including caches, and that group's hard limit.
    pub(crate) fn charged(&self) -> (Option<u64>, Option<u64>) {
        let Some(group) = self.list.first() else {
            return (None, None);
        };
        let read = |file: Option<&str>| number(&group.dir.join(file?));
        let hard = group.version.limits().first().copied();
        (read(Some(group.version.usage())), read(hard))
    }

    /// Returns how often the kernel has found no memory in the process's own group, or killed a process there.
    pub(crate) fn kills(&self) -> u64 {
        let Some(group) = self.list.first() else {
            return 0;
        };
        let (file, names): (_, &[&str]) = match group.version {
            Version::One => ("memory.oom_control", &["oom_kill"]),
            Version::Two => ("memory.events", &["oom", "oom_kill"]),
        };
        let text = fs::read_to_string(group.dir.join(file)).unwrap_or_default();
        let numbers = names.iter().filter_map(|name| field(&text, name));
        numbers.fold(0, u64::saturating_add)
    }
}

impl Group {
    fn limits(&self) -> Vec<Limit> {
        let Some(used) = number(&self.dir.join(self.version.usage())) else {
            return Vec::new();
        };
        let limits: Vec<_> = self
            .version
            .limits()
            .iter()
            .filter_map(|&file| Some((file, number(&self.dir.join(file))?)))
            .collect();
        if limits.is_empty() {
            return Vec::new();
        }
        let cached = self.cached().min(used);
        limits
            .into_iter()
            .map(|(file, bytes)| Limit {
                what: format!("{file} of {}", self.name),
                bytes,
                left: bytes.saturating_sub(used - cached),
            })
            .collect()
    }

    fn cached(&self) -> u64 {
        let text = fs::read_to_string(self.dir.join("memory.stat")).unwrap_or_default();
        let lists = self.version.caches();
        let sizes = lists.into_iter().filter_map(|name| field(&text, name));
        sizes.fold(0, u64::saturating_add)
    }
}

/// Returns the directories from the group at `path` up to the mount point.
fn upwards(mount: &str, path: &str) -> Vec<String> {
    // The path of a group outside of the mounted ones has dots (cgroup_namespaces(7)).
    let plain = |part: &&str| !part.is_empty() && *part != "." && *part != "..";
    let parts: Vec<&str> = path.split('/').filter(plain).collect();
    (0..=parts.len().min(MOST))
        .rev()
        .map(|length| {
            let parts = parts.iter().take(length);
            parts.fold(mount.to_owned(), |dir, part| format!("{dir}/{part}"))
        })
        .collect()
}

/// Returns the number after `name` in a file with one name and one number per line.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, rest) = line.split_once([' ', ':'])?;
        if found != name {
            return None;
        }
        rest.split_ascii_whitespace().next()?.parse().ok()
    })
}

/// Returns the number in a file, or `None` for `max`, and for the number that version 1 writes if there is no limit.
fn number(path: &Path) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let bytes = text.trim().parse().ok()?;
    (bytes < 1 << 62).then_some(bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Machine made of files.
    pub(crate) struct Machine(pub(crate) PathBuf);

    impl Machine {
        pub(crate) fn new(name: &str) -> Machine {
            let path =
                std::env::temp_dir().join(format!("heapray-machine-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            let machine = Machine(path);
            machine.put(
                "proc/meminfo",
                "MemTotal: 64000000 kB\nMemAvailable: 32000000 kB\n",
            );
            machine
        }

        pub(crate) fn put(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn left(machine: &Machine) -> Vec<(String, u64, u64)> {
        let limits = Groups::find(&machine.0).limits();
        limits
            .into_iter()
            .map(|limit| (limit.what, limit.bytes, limit.left))
            .collect()
    }

    #[test]
    fn every_limit_up_the_tree_counts_and_caches_do_not() {
        let machine = Machine::new("v2");
        machine.put("proc/self/cgroup", "0::/kube/pod/app\n");
        let group = "sys/fs/cgroup/kube/pod";
        machine.put(&format!("{group}/app/memory.current"), "900\n");
        machine.put(&format!("{group}/app/memory.max"), "max\n");
        machine.put(&format!("{group}/app/memory.high"), "950\n");
        machine.put(
            &format!("{group}/app/memory.stat"),
            "anon 500\ninactive_file 300\nactive_file 50\n",
        );
        machine.put(&format!("{group}/memory.current"), "1900\n");
        machine.put(&format!("{group}/memory.max"), "2000\n");
        assert_eq!(
            left(&machine),
            [
                (
                    "memory.high of /sys/fs/cgroup/kube/pod/app".to_owned(),
                    950,
                    400
                ),
                (
                    "memory.max of /sys/fs/cgroup/kube/pod".to_owned(),
                    2000,
                    100
                ),
            ]
        );
        machine.put(
            &format!("{group}/app/memory.events"),
            "low 0\nhigh 9\nmax 4\noom 2\noom_kill 1\n",
        );
        let groups = Groups::find(&machine.0);
        assert_eq!(groups.kills(), 3);
        assert_eq!(groups.charged(), (Some(900), None));
        let tightest = groups.tightest().unwrap();
        assert_eq!((tightest.bytes, tightest.used()), (2000, 1900));
    }

    #[test]
    fn the_first_version_is_known_and_a_path_of_the_host_leads_to_the_mounted_group() {
        let machine = Machine::new("v1");
        machine.put(
            "proc/self/cgroup",
            "5:cpu,cpuacct:/x\n4:memory:/docker/1:2\n0::/\nbad\n",
        );
        let group = "sys/fs/cgroup/memory";
        machine.put(&format!("{group}/memory.usage_in_bytes"), "600\n");
        machine.put(&format!("{group}/memory.limit_in_bytes"), "1000\n");
        machine.put(
            &format!("{group}/memory.stat"),
            "inactive_file 1\ntotal_inactive_file 100\n",
        );
        assert_eq!(
            left(&machine),
            [(
                "memory.limit_in_bytes of /sys/fs/cgroup/memory".to_owned(),
                1000,
                500
            )]
        );
        assert_eq!(Groups::find(&machine.0).charged(), (Some(600), Some(1000)));
        machine.put(
            &format!("{group}/memory.limit_in_bytes"),
            "9223372036854771712\n",
        );
        assert_eq!(left(&machine), []);
    }

    #[test]
    fn files_that_make_no_sense_are_no_limits() {
        let machine = Machine::new("odd");
        assert_eq!(left(&machine), [], "nothing there");
        machine.put("proc/self/cgroup", "0::/../../etc\n");
        machine.put("sys/fs/cgroup/memory.current", "-5\n");
        machine.put("sys/fs/cgroup/memory.max", "1e9\n");
        assert_eq!(left(&machine), []);
        machine.put("sys/fs/cgroup/memory.current", "500\n");
        machine.put("sys/fs/cgroup/memory.max", "100\n");
        machine.put(
            "sys/fs/cgroup/memory.stat",
            "inactive_file 18446744073709551615\nactive_file 9\n",
        );
        assert_eq!(left(&machine)[0].2, 100, "more caches than memory");
        let deep = "/a".repeat(5000);
        assert!(upwards("/m", &deep).len() <= MOST + 1);
    }
}
