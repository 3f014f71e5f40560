use aiseki::reports::{FLOOD_WINDOW, NewReport, Quote, REPORTS_AT_ONCE};
use aiseki_lobby::RoomId;

use super::house::{House, person};
use super::stores::Place;

suite![
    reports_are_kept_exactly_and_come_newest_first,
    a_report_is_judged_once,
    nobody_floods_the_operators,
];

fn report(by: u64, reason: &str) -> NewReport {
    let quote = |seq, text: &str| Quote { seq, seat: 1, text: text.into(), at: 1_700_000_000_000 };
    NewReport {
        room: RoomId([7; 16]),
        reporter: person(by),
        reported: person(1_000),
        seat: 2,
        reason: reason.into(),
        said: vec![quote(1, "e\u{301} \"鮨\"\n\t\\"), quote(u64::from(u32::MAX), "👩‍👩‍👧")],
    }
}

async fn reports_are_kept_exactly_and_come_newest_first(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let before = house.now();
    let mut made: Vec<NewReport> = (0..5).map(|n| report(n, &format!("'; -- {n}"))).collect();
    made[4].said.clear();
    for report in &made {
        assert_eq!(house.store.add_report(report.clone()).await.unwrap(), Ok(()));
    }
    // A repetition is there already.
    assert_eq!(house.store.add_report(made[0].clone()).await.unwrap(), Ok(()));
    let house = house.reopen().await;
    let found = house.store.reports(None, 10, true).await.unwrap();
    assert!(found.iter().all(|r| r.judged_at.is_none() && r.created_at.abs_diff(before) < 60_000));
    made.reverse();
    assert_eq!(found.iter().map(|r| r.about.clone()).collect::<Vec<_>>(), made);
    assert!(found.is_sorted_by(|a, b| a.id > b.id));
    let page = house.store.reports(Some(found[1].id), 2, false).await.unwrap();
    assert_eq!(page, found[2..4]);
    assert_eq!(house.store.reports(Some(found[4].id), 2, false).await.unwrap(), []);
    assert_eq!(house.store.report(found[3].id).await.unwrap().as_ref(), Some(&found[3]));
    assert_eq!(house.store.report(4711).await.unwrap(), None);
}

async fn a_report_is_judged_once(place: Box<dyn Place>) {
    let house = House::open(place).await;
    for by in [1, 2] {
        house.store.add_report(report(by, "why")).await.unwrap().unwrap();
    }
    let newest = house.store.reports(None, 1, true).await.unwrap()[0].id;
    let judged = house.store.judge_report(newest, None).await.unwrap().unwrap();
    assert!(judged.judged_at.is_some() && judged.ban.is_none());
    let banned = house.store.judge_report(newest, Some(5)).await.unwrap().unwrap();
    assert_eq!((banned.judged_at, banned.ban), (judged.judged_at, Some(5)));
    for ban in [None, Some(6)] {
        let same = house.store.judge_report(newest, ban).await.unwrap();
        assert_eq!(same.as_ref(), Some(&banned));
    }
    let open = house.store.reports(None, 10, true).await.unwrap();
    assert_eq!(open.iter().map(|r| r.about.reporter).collect::<Vec<_>>(), [person(1)]);
    assert_eq!(house.store.reports(None, 10, false).await.unwrap().len(), 2);
    assert_eq!(house.store.judge_report(4711, Some(1)).await.unwrap(), None);
}

async fn nobody_floods_the_operators(place: Box<dyn Place>) {
    let house = House::open(place).await;
    for n in 0..REPORTS_AT_ONCE {
        let added = house.store.add_report(report(1, &n.to_string())).await.unwrap();
        assert_eq!(added, Ok(()));
    }
    let refused = house.store.add_report(report(1, "more")).await.unwrap().unwrap_err();
    let wait = refused.retry_after;
    assert!(wait > FLOOD_WINDOW - 60_000 && wait <= FLOOD_WINDOW, "{wait}");
    // What is there already is no flood, and others are not kept out.
    assert_eq!(house.store.add_report(report(1, "0")).await.unwrap(), Ok(()));
    assert_eq!(house.store.add_report(report(2, "more")).await.unwrap(), Ok(()));
}
