//! The control group's figure: what a container's limit is held against.

use std::path::{Path, PathBuf};

/// Bytes charged to the process's group, and its limit.
pub(super) fn read() -> (Option<u64>, Option<u64>) {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for (dir, current, limit) in candidates(&own) {
        if let Some(bytes) = number(&dir.join(current)) {
            return (Some(bytes), number(&dir.join(limit)));
        }
    }
    (None, None)
}

type Candidate = (PathBuf, &'static str, &'static str);

/// Where the figures may be, by the text of `/proc/self/cgroup`: `<number>:<controllers>:<path>` a line. In a container
/// the path is often that of the host, while the group is mounted at the root.
fn candidates(own: &str) -> Vec<Candidate> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, current, limit) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.current", "memory.max")
        } else if controllers.split(',').any(|one| one == "memory") {
            (
                "/sys/fs/cgroup/memory",
                "memory.usage_in_bytes",
                "memory.limit_in_bytes",
            )
        } else {
            continue;
        };
        let below = Path::new(root).join(path.trim_start_matches('/'));
        found.push((below, current, limit));
        found.push((root.into(), current, limit));
    }
    found
}

/// `None` for `max`, and for the number that the first version writes where there is no limit.
fn number(path: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let bytes = text.trim().parse().ok()?;
    (bytes < 1 << 62).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_looked_for_below_the_groups_path_and_at_the_root() {
        let dirs = |own: &str| -> Vec<_> {
            let found = candidates(own).into_iter();
            found
                .map(|(dir, current, _)| format!("{}/{current}", dir.display()))
                .collect()
        };
        assert_eq!(
            dirs("0::/kube/pod1\n"),
            [
                "/sys/fs/cgroup/kube/pod1/memory.current",
                "/sys/fs/cgroup/memory.current"
            ]
        );
        assert_eq!(
            dirs("5:cpu,cpuacct:/x\n4:memory:/docker/1:2\nbad"),
            [
                "/sys/fs/cgroup/memory/docker/1:2/memory.usage_in_bytes",
                "/sys/fs/cgroup/memory/memory.usage_in_bytes"
            ]
        );
    }
}
