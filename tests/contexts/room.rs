//! Tests that contexts that hold nothing make room for new ones, and that no sum changes by that.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use heapray::collector::snapshot::Snapshot;
use heapray::session::Session;
use heapray::{Context, context};

use crate::support::Dir;
use crate::support::process::{in_own_process, test_name};
use crate::value;

/// Number of contexts that there is room for.
const ROOM: usize = 4096;
/// A size that nothing else allocates.
const SIZE: usize = 7_193;

fn block() -> Vec<u8> {
    black_box(vec![1_u8; SIZE])
}

fn tenant(name: &str) -> Context {
    context([("tenant", name)])
}

/// Returns what was allocated, and is live, in blocks of `SIZE`, by route and tenant.
fn sums(snapshot: &Snapshot) -> BTreeMap<(String, String), [u64; 2]> {
    let mut sums: BTreeMap<(String, String), [u64; 2]> = BTreeMap::new();
    for site in &snapshot.stacks.sites {
        if site.allocated.count > 0 && site.allocated.bytes == site.allocated.count * SIZE as u64 {
            let [route, tenant] = ["route", "tenant"].map(|key| value(snapshot, site.context, key));
            let sum = sums.entry((route.to_owned(), tenant.to_owned()));
            let [allocated, live] = sum.or_default();
            *allocated += site.allocated.count;
            *live += site.live.count;
        }
    }
    sums
}

#[test]
fn contexts_that_hold_nothing_make_room_and_no_sum_changes() {
    in_own_process(test_name!(), || {
        let dir = Dir::new("contexts-room");
        let session = Session::start(&dir.options()).unwrap();
        let route = context([("route", "GET /a")]);
        let in_route = route.enter();
        let mut kept: Vec<Vec<u8>> = (0..10)
            .map(|nth| tenant(&format!("holds {nth}")).run(block))
            .collect();
        // They hold something until there is no room left.
        let (idle, blocks): (Vec<Context>, Vec<Vec<u8>>) = (0..ROOM - 11)
            .map(|nth| tenant(&format!("idle {nth}")))
            .map(|tenant| (tenant, tenant.run(block)))
            .unzip();
        let refused = tenant("one more");
        assert_eq!(refused.labels()[1].1, "other");
        assert_eq!(refused.labels()[0].1, "GET /a", "the labels around it stay");
        drop(refused.run(block));
        drop(blocks);

        let deadline = Instant::now() + Duration::from_secs(60);
        while tenant("one more").labels()[1].1 == "other" {
            assert!(Instant::now() < deadline, "there is no room after a minute");
            std::thread::sleep(Duration::from_millis(100));
        }
        kept.push(tenant("one more").run(block));
        // One that has retired is itself again.
        kept.push(idle[0].run(block));
        assert_eq!(tenant("idle 0"), idle[0]);
        drop(in_route);

        let snapshot = session.stop().unwrap();
        let mut sums = sums(&snapshot);
        let mut of = |tenant: &str| sums.remove(&("GET /a".to_owned(), tenant.to_owned()));
        for nth in 0..10 {
            assert_eq!(of(&format!("holds {nth}")), Some([1, 1]));
        }
        assert_eq!(of("one more"), Some([1, 1]));
        assert_eq!(
            of("idle 0"),
            Some([1, 1]),
            "what it did before is of `other`"
        );
        let [retired, live] = of("other").unwrap();
        assert_eq!(live, 0);
        let others: u64 = sums.values().map(|[allocated, _]| allocated).sum();
        let all = idle.len() as u64 + 1;
        assert_eq!(
            retired + others,
            all,
            "nothing is lost, nothing is counted twice"
        );
        assert!(others > ROOM as u64 / 4, "half of the room at most is made");
        assert!(
            sums.keys()
                .all(|(route, tenant)| route == "GET /a" && tenant.starts_with("idle"))
        );
        let notes = snapshot.notes.join("\n");
        assert!(notes.contains("made room for new ones"), "{notes}");
        drop(kept);
    });
}
