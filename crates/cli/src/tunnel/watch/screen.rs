//! The screen: a row for each path, and how its rate went.

use polypath_daemon::Status;
use polypath_wire::hip::Hit;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Row as Cells, Sparkline, Table};

use super::history::{History, Row};
use crate::tunnel::lists::state;

/// Headers and widths of the columns, and the widest terminals that have no room for them.
const COLUMNS: [(&str, Constraint, u16); 13] = [
    ("peer", Constraint::Fill(1), 47),
    ("interface", Constraint::Length(9), 0),
    ("state", Constraint::Length(6), 0),
    ("up", Constraint::Length(7), 0),
    ("down", Constraint::Length(7), 0),
    ("share", Constraint::Length(5), 53),
    ("RTT", Constraint::Length(6), 0),
    ("again", Constraint::Length(6), 60),
    ("marked", Constraint::Length(6), 99),
    ("window", Constraint::Length(6), 67),
    ("flight", Constraint::Length(6), 99),
    ("queue", Constraint::Length(5), 73),
    (GROUP, Constraint::Length(5), 79),
];
const GROUP: &str = "group";
/// Lines of the last rates of a path.
const HEIGHT: u16 = 2;

/// Draws what was seen last.
pub fn draw(frame: &mut Frame<'_>, history: &History) {
    let Some(status) = &history.status else { return };
    let (rows, width) = (history.rows.len() as u16, frame.area().width);
    let head: Vec<Line<'_>> =
        head(status).iter().flat_map(|text| wrapped(text, width)).map(Line::from).collect();
    let shown: Vec<usize> = (0..COLUMNS.len()).filter(|n| width > COLUMNS[*n].2).collect();
    let groups = shown.iter().any(|n| COLUMNS[*n].0 == GROUP);
    let legend: Vec<Line<'_>> =
        legend(groups).iter().flat_map(|text| wrapped(text, width)).map(Line::from).collect();
    let [top, table, foot] = [head.len() as u16, rows + 1, legend.len() as u16].map(Constraint::Length);
    let parts = [top, table, Constraint::Min(0), foot];
    let [top, table, lines, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Text::from(head).style(Modifier::BOLD), top);
    let widths = shown.iter().map(|n| COLUMNS[*n].1);
    let cells = history.rows.iter().map(|row| cells(status, row, &shown));
    let header = Cells::new(shown.iter().map(|n| COLUMNS[*n].0)).style(Modifier::UNDERLINED);
    frame.render_widget(Table::new(cells, widths).header(header).column_spacing(1), table);
    last_minute(frame, history, lines);
    frame.render_widget(Text::from(legend), foot);
}

/// What the columns mean.
fn legend(groups: bool) -> [String; 2] {
    let group = if groups { "; paths of one group share a bottleneck" } else { "" };
    [
        format!("q ends. In Mbit/s, ms and kB{group}."),
        "RTT: of data in flight, smoothed, queues included; else the least of heartbeats.".to_owned(),
    ]
}

/// Its words in lines of at most `width`, if none is longer.
fn wrapped(text: &str, width: u16) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let fits = |line: &&mut String| line.chars().count() + 1 + word.chars().count() <= usize::from(width);
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            last => match last.filter(fits) {
                Some(line) => *line += &format!(" {word}"),
                None => lines.push(word.to_owned()),
            },
        }
    }
    lines
}

/// The header: this host's tag and device; the numbers of peers and connections.
fn head(status: &Status) -> [String; 2] {
    let lane = &status.lane;
    let up = status.peers.iter().filter(|peer| peer.associated).count();
    [
        format!("{} on {}", status.hit, status.device),
        format!(
            "{up} of {} peers, {} connections, {} as packets",
            status.peers.len(),
            lane.open,
            lane.by_packets
        ),
    ]
}

/// The cells of the `shown` columns.
fn cells(status: &Status, row: &Row, shown: &[usize]) -> Cells<'static> {
    let (path, load) = (&row.path, &row.path.load);
    let state = state(path);
    let kilo = |bytes: u64| format!("{:.0}", bytes as f64 / 1e3);
    let queue = status.peers.iter().find(|peer| peer.name == row.peer).map_or(0, |peer| peer.packets.waiting);
    let group = load.bottleneck.map_or("-".to_owned(), |group| group.to_string());
    let rtt = load.rtt_ms.or(path.delay_ms.map(|delay| 2.0 * delay));
    let texts = [
        short(&row.peer),
        row.interface.clone(),
        state.to_owned(),
        format!("{:.2}", row.up),
        format!("{:.2}", row.down),
        format!("{:.0} %", 100.0 * row.share),
        rtt.map_or("-".to_owned(), |ms| format!("{ms:.1}")),
        format!("{:.1} %", 100.0 * row.again),
        format!("{:.0}", row.marked),
        kilo(load.window),
        kilo(load.in_flight),
        kilo(queue),
        group,
    ];
    let colour = if state == "up" { Style::new() } else { Style::new().fg(Color::Red) };
    Cells::new(shown.iter().map(|n| texts[*n].clone())).style(colour)
}

/// A peer's name; of a tag the end, as tags begin alike.
fn short(peer: &str) -> String {
    match peer.parse::<Hit>() {
        Ok(_) => format!("…{}", &peer[peer.len() - 7..]),
        Err(_) => peer.to_owned(),
    }
}

/// A line of rates for each path, as far as there is room.
fn last_minute(frame: &mut Frame<'_>, history: &History, area: Rect) {
    let most = history.rows.iter().flat_map(|row| &row.line).max().copied().unwrap_or(0).max(1);
    for (row, y) in history.rows.iter().zip((area.y + 1..area.bottom()).step_by(usize::from(HEIGHT) + 1)) {
        if y + HEIGHT >= area.bottom() {
            return;
        }
        let title = format!("{} {}", row.interface, row.ends);
        frame.render_widget(Line::from(title), Rect { y, height: 1, ..area });
        let line =
            Sparkline::default().data(row.line.iter().copied()).max(most).style(Style::new().fg(Color::Cyan));
        frame.render_widget(line, Rect { y: y + 1, height: HEIGHT, ..area });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::{Value, json};

    use super::*;

    /// The JSON of path `n`, over which `sent` bytes left.
    fn path(n: u8, sent: u64, answers: bool) -> Value {
        json!({
            "local": format!("192.0.2.{n}:10500"), "remote": "203.0.113.5:10500", "up": true, "answers": answers,
            "delay_ms": 10.0, "rate_mbps": 80.0, "mtu": 1500, "sent_packets": sent / 1250, "sent_bytes": sent,
            "received_bytes": 0, "marked_packets": sent / 125_000, "packets": null,
            "load": { "connections": 1, "window": 150_000, "in_flight": 90_000, "again": sent / 125_000,
                      "rtt_ms": 21.5, "bottleneck": 0 },
        })
    }

    fn status(sent: [u64; 2]) -> Status {
        let mut status: Status = serde_json::from_value(json!({
            "hit": "2001:22:88e0:5362:e35e:1c8f:b38e:ef19", "device": "polypath0", "interfaces": [
                { "name": "eth0", "addresses": ["192.0.2.1"], "used": "used", "limit_mbps": null },
                { "name": "wwan0", "addresses": ["192.0.2.2"], "used": "used", "limit_mbps": null },
            ],
            "lane": polypath_daemon::LaneStatus { open: 3, ..Default::default() },
            "packets": polypath_daemon::PacketStatus::default(),
            "peers": [{
                "name": "server", "hit": "2001:22:88e0:5362:e35e:1c8f:b38e:ef18", "associated": true, "sent": 0, "received": 0,
                "packets": polypath_daemon::PeerPackets { waiting: 7000, ..Default::default() },
                "paths": [path(1, sent[0], true), path(2, sent[1], false)],
            }],
        }))
        .unwrap();
        status.peers[0].name = "server".into();
        status
    }

    #[test]
    fn the_screen_shows_what_each_path_carries() {
        let mut history = History::default();
        history.see(Duration::ZERO, &status([0, 0]));
        history.see(Duration::from_secs(2), &status([7_500_000, 2_500_000]));
        let mut terminal = Terminal::new(TestBackend::new(120, 16)).unwrap();
        terminal.draw(|frame| draw(frame, &history)).unwrap();
        let shown = terminal.backend().to_string();
        for part in [
            "1 of 1 peers, 3 connections",
            "marked",
            "eth0      up     30.00   0.00    75 %  21.5   1.0 %  30     150    90     7     0",
            "wwan0     silent 10.00   0.00    25 %",
            "eth0 192.0.2.1 → 203.0.113.5",
            "█",
            "q ends",
        ] {
            assert!(shown.contains(part), "{part}:\n{shown}");
        }
    }

    /// A busy server with long names, on a terminal of that many columns.
    fn on_a_terminal(columns: u16) -> Terminal<TestBackend> {
        let mut first = status([0, 0]);
        first.peers[0].name = first.peers[0].hit.to_string();
        let mut then = status([7_500_000, 2_500_000]);
        then.peers[0].name = first.peers[0].name.clone();
        // The longest name that a device has, and numbers as of a busy server.
        then.device = "polypath-office".into();
        (then.lane.open, then.lane.by_packets) = (4096, 1_234_567);
        let mut history = History::default();
        history.see(Duration::ZERO, &first);
        history.see(Duration::from_secs(2), &then);
        let mut terminal = Terminal::new(TestBackend::new(columns, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &history)).unwrap();
        terminal
    }

    #[test]
    fn a_terminal_of_80_columns_shows_all_whole() {
        insta::assert_snapshot!(on_a_terminal(80).backend());
    }

    #[test]
    fn a_terminal_of_40_columns_shows_rates_and_round_trips_whole() {
        insta::assert_snapshot!(on_a_terminal(40).backend());
    }

    #[test]
    fn a_screen_of_any_size_is_drawn() {
        let mut history = History::default();
        history.see(Duration::ZERO, &status([0, 0]));
        for (width, height) in [(1, 1), (20, 3), (80, 6), (300, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &history)).unwrap();
        }
    }
}
