//! Tasks of tokio are in contexts of their names and of the places that spawned them. `scripts/tokio-tasks` runs the test.
#![cfg(all(test, tokio_unstable))]

use heapray::{Context, SpanContexts, context};
use tokio::runtime::Runtime;
use tokio::task;
use tracing_subscriber::layer::SubscriberExt as _;

fn labels() -> Vec<(String, String)> {
    Context::current().labels()
}

fn here(line: u32) -> (String, String) {
    ("spawned".to_owned(), format!("{}:{line}", file!()))
}

#[test]
fn tasks_have_their_names_and_the_places_that_spawned_them() {
    let contexts = tracing_subscriber::registry().with(SpanContexts::new().tasks());
    tracing::subscriber::set_global_default(contexts).unwrap();
    Runtime::new().unwrap().block_on(async {
        let work = || async {
            task::yield_now().await;
            labels()
        };
        let named = task::Builder::new().name("mailer").spawn(work()).unwrap();
        let name = ("task".to_owned(), "mailer".to_owned());
        assert_eq!(named.await.unwrap(), [here(line!() - 2), name]);

        // Tasks without a name, in the context of the code that spawns them.
        let (unnamed, blocking) = context([("tenant", "acme")]).run(|| {
            let unnamed = task::spawn(work());
            (unnamed, task::spawn_blocking(labels))
        });
        let tenant = ("tenant".to_owned(), "acme".to_owned());
        assert_eq!(unnamed.await.unwrap(), [here(line!() - 4), tenant.clone()]);
        assert_eq!(blocking.await.unwrap(), [here(line!() - 4), tenant]);
    });
}
