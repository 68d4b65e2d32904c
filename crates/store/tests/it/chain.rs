//! What somebody with a hand on the database file can do, and that it is found.

use crate::bench::{all, failed, keep, options, record};
use hookgate_store::audit::Audit;
use hookgate_store::chain::Checkpoint;
use hookgate_store::query::{Filter, Order};
use hookgate_store::store::Options;
use hookgate_store::verify::{FaultKind, Verified};

/// Ten rows, of which the fourth has a detail.
fn trail(options: &Options) {
    keep(
        options,
        (1..=10).map(|n| match n {
            4 => failed("h", "e-4", "the story"),
            n => record("h", &format!("e-{n}")),
        }),
    );
}

fn change(options: &Options, sql: &str) {
    let connection = rusqlite::Connection::open(options.database_file()).unwrap();
    connection.execute_batch(sql).unwrap();
}

fn verify(options: &Options, against: Option<&Checkpoint>) -> Verified {
    let mut audit = Audit::open(options).unwrap();
    match against {
        Some(checkpoint) => audit.verify_against(checkpoint).unwrap(),
        None => audit.verify().unwrap(),
    }
}

/// What is found first, at which place, after somebody changed the file.
#[track_caller]
fn check(keyed: bool, sql: &str, expected: Option<(FaultKind, u64)>) {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    if !keyed {
        options.keys = None;
    }
    trail(&options);
    assert_eq!(verify(&options, None).fault, None);
    change(&options, sql);
    let found = verify(&options, None).fault;
    assert_eq!(found.as_ref().map(|fault| (fault.kind, fault.seq)), expected, "{sql}: {found:?}");
}

#[test]
fn each_change_is_found_at_its_row() {
    for keyed in [true, false] {
        for (sql, kind, seq) in [
            ("UPDATE executions SET duration_us = 1 WHERE seq = 3", FaultKind::Changed, 3),
            ("UPDATE executions SET times = 9 WHERE seq = 3", FaultKind::Changed, 3),
            ("UPDATE executions SET error = NULL WHERE seq = 4", FaultKind::Changed, 4),
            ("UPDATE executions SET event_id = 'e-0' WHERE seq = 10", FaultKind::Changed, 10),
            ("UPDATE executions SET hash = zeroblob(32) WHERE seq = 3", FaultKind::Changed, 3),
            // texts that stand elsewhere
            ("UPDATE hooks SET label = 'nobody'", FaultKind::Changed, 1),
            ("UPDATE subjects SET session_id = 's-2'", FaultKind::Changed, 1),
            ("UPDATE kinds SET decision = 'allow', cause = NULL", FaultKind::Changed, 4),
            ("DELETE FROM executions WHERE seq = 5", FaultKind::Missing, 5),
            ("DELETE FROM executions WHERE seq = 1", FaultKind::Missing, 1),
            ("DELETE FROM executions WHERE seq > 7", FaultKind::Cut, 7),
            ("DELETE FROM executions", FaultKind::Cut, 0),
            // two rows change places, with their numbers and without
            (
                "UPDATE executions SET n = -1 WHERE seq = 6; UPDATE executions SET n = 6 WHERE seq = 7;
                 UPDATE executions SET n = 7 WHERE n = -1",
                FaultKind::Missing,
                6,
            ),
            (
                "CREATE TEMP TABLE two AS SELECT seq, event_id FROM executions WHERE seq IN (6, 7);
                 UPDATE executions SET event_id = (SELECT event_id FROM two WHERE two.seq = 13 - executions.seq)
                 WHERE seq IN (6, 7)",
                FaultKind::Changed,
                6,
            ),
            // a row that was never written
            (
                "INSERT INTO executions SELECT 100, hook, subject, kind, chain, 5, created_at, duration_us, input_hash,
                 zeroblob(16), hash, 'x', error, refused_fields, tokens, trace_id, key_id, detail, times FROM executions WHERE seq = 5",
                FaultKind::Misplaced,
                5,
            ),
            (
                "INSERT INTO executions SELECT 100, hook, subject, kind, chain, 11, created_at, duration_us, input_hash,
                 zeroblob(16), hash, 'x', error, refused_fields, tokens, trace_id, key_id, detail, times FROM executions WHERE seq = 5",
                FaultKind::Changed,
                11,
            ),
            ("UPDATE executions SET chain = 7 WHERE seq = 2", FaultKind::Stranger, 2),
            ("UPDATE chains SET hash = zeroblob(32)", FaultKind::Forked, 10),
        ] {
            check(keyed, sql, Some((kind, seq)));
        }
    }
}

#[test]
fn what_a_key_shows_beyond_that() {
    // a sealed detail that was changed, and one that was taken from another row
    check(true, "UPDATE executions SET detail = zeroblob(60) WHERE seq = 4", Some((FaultKind::Detail, 4)));
    check(
        true,
        "UPDATE executions SET detail = NULL, key_id = NULL WHERE seq = 4",
        Some((FaultKind::Changed, 4)),
    );
    // a beginning that nobody with the key took out
    let forged = "INSERT INTO anchors SELECT chain, seq, hash, n, NULL, NULL FROM executions WHERE seq = 3;
                  DELETE FROM executions WHERE seq <= 3";
    check(true, forged, Some((FaultKind::Anchor, 3)));
    check(false, forged, None);
}

#[test]
fn the_key_or_its_absence_is_part_of_the_chain() {
    let dir = tempfile::tempdir().unwrap();
    let keyed = options(dir.path());
    trail(&keyed);
    let plain = Options { keys: None, ..keyed.clone() };
    keep(&plain, [record("h", "e-11")]);
    let verified = verify(&keyed, None);
    assert_eq!((verified.fault, verified.without_key), (None, 1));
    assert_eq!(verified.key_lost.unwrap().1, 11);
    // rows that were chained with a key do not pass as rows without
    change(&keyed, "UPDATE epochs SET key_id = NULL");
    let fault = verify(&keyed, None).fault.unwrap();
    assert_eq!((fault.kind, fault.seq), (FaultKind::Changed, 1));
}

#[test]
fn a_checkpoint_finds_a_cut_end_and_another_trail() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { keys: None, ..options(dir.path()) };
    trail(&options);
    let text = Audit::open(&options).unwrap().checkpoint().unwrap().to_string();
    let checkpoint = Checkpoint::parse(&text).unwrap();
    assert_eq!(checkpoint.to_string(), text);
    keep(&options, [record("h", "e-11")]);
    assert_eq!(verify(&options, Some(&checkpoint)).fault, None);
    // whoever cuts the end and sets the head back is not found by the file alone
    change(
        &options,
        "DELETE FROM executions WHERE seq > 8;
         UPDATE chains SET (seq, hash) = (SELECT seq, hash FROM executions WHERE seq = 8)",
    );
    assert_eq!(verify(&options, None).fault, None);
    let fault = verify(&options, Some(&checkpoint)).fault.unwrap();
    assert_eq!((fault.kind, fault.seq), (FaultKind::Cut, 8));
    assert!(fault.to_string().contains("the rows after place 8 were cut off"), "{fault}");
    // and goes on from there
    keep(&options, (20..25).map(|n| record("h", &format!("e-{n}"))));
    assert_eq!(verify(&options, None).fault, None);
    let fault = verify(&options, Some(&checkpoint)).fault.unwrap();
    assert_eq!((fault.kind, fault.seq), (FaultKind::Forked, 10));
    for bad in ["", "hookgate audit checkpoint 2", "hookgate audit checkpoint 1\nw 1", &format!("{text}0")] {
        assert!(Checkpoint::parse(bad).unwrap_err().to_string().contains("not a checkpoint"), "{bad}");
    }
}

#[test]
fn the_view_has_the_columns_that_others_know() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    trail(&options);
    let connection = rusqlite::Connection::open(options.database_file()).unwrap();
    let statement = connection.prepare("SELECT * FROM hook_executions").unwrap();
    let columns = statement.column_names().collect::<Vec<_>>().join(" ");
    assert_eq!(
        columns,
        "id hook_id session_id event input_hash decision duration_ms dedup_key error error_detail created_at tenant_id \
         agent_id cause hook_label hook_version refused_fields tool_name trace_id tokens times key_id event_id writer \
         seq hash"
    );
    let mut audit = Audit::open(&options).unwrap();
    let entry = audit.list(&Filter::default(), Order::OldestFirst, None, 1).unwrap().remove(0);
    let seen: (i64, String, String, i64) = connection
        .query_row("SELECT id, hook_id, hash, duration_ms FROM hook_executions WHERE seq = 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    assert_eq!(seen, (entry.id, "h".into(), entry.hash, 1));
    assert_eq!(all(&options).len(), 10);
}
