//! SQLite, built from its C source: a service's store that four threads fill, query and change.

use programs::{Random, text};
use rusqlite::{Connection, params};

fn main() -> rusqlite::Result<()> {
    let uri = "file:store?mode=memory&cache=shared";
    let store = Connection::open(uri)?;
    store.execute_batch(
        "PRAGMA read_uncommitted=1; CREATE TABLE note (id INTEGER PRIMARY KEY, author INTEGER, text TEXT);
         CREATE INDEX by_author ON note (author);",
    )?;
    let mut store = store;
    let mut random = Random(1);
    let transaction = store.transaction()?;
    for id in 0..30_000 {
        transaction.execute(
            "INSERT INTO note VALUES (?1, ?2, ?3)",
            params![id, id % 97, text(&mut random, 8)],
        )?;
    }
    transaction.commit()?;
    let readers: Vec<_> = (0..4)
        .map(|thread| {
            std::thread::spawn(move || -> rusqlite::Result<u64> {
                let store = Connection::open(uri)?;
                store.pragma_update(None, "read_uncommitted", 1)?;
                let mut found = 0;
                for author in (thread..97).step_by(4) {
                    let mut query =
                        store.prepare("SELECT text FROM note WHERE author = ?1 ORDER BY text")?;
                    let texts: Vec<String> = query
                        .query_map([author], |row| row.get(0))?
                        .collect::<rusqlite::Result<_>>()?;
                    assert!(texts.is_sorted());
                    found += texts.len() as u64;
                }
                Ok(found)
            })
        })
        .collect();
    let mut found = 0;
    for reader in readers {
        found += reader.join().unwrap()?;
    }
    assert_eq!(found, 30_000);
    store.execute("DELETE FROM note WHERE id % 2 = 0", [])?;
    let left: u64 = store.query_row("SELECT count(*) FROM note", [], |row| row.get(0))?;
    assert_eq!(left, 15_000);
    println!("{found} notes read, {left} left");
    Ok(())
}
