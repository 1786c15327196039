//! The result as a page: one file, without scripts, that needs no network.

use std::fmt::Write;

use heapray_report::units::rounded_size as size;

use super::figures::Replica;
use super::shown::{Fleet, growth, live, position};

const STYLE: &str = include_str!("page.css");

/// Returns the page.
pub(crate) fn page(fleet: &Fleet) -> String {
    let mut body = format!(
        "<h1>Memory of {}</h1>\n",
        text(&fleet.answered().replace(" answered", ""))
    );
    for (at, sentence) in fleet.sentences().iter().enumerate() {
        let class = if at == 0 { "lead" } else { "line" };
        // A `String` takes everything.
        let _ = writeln!(body, "<p class=\"{class}\">{}</p>", text(sentence));
    }
    if let Some(why) = &fleet.no_comparison {
        let _ = writeln!(body, "<p class=\"line\">No comparison: {}</p>", text(why));
    }
    let largest = fleet.replicas.iter().filter_map(|replica| replica.live);
    let largest = largest.max().unwrap_or(0).max(1);
    body.push_str(
        "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Replica<th scope=\"col\">Build<th scope=\"col\">RSS\
         <th scope=\"col\">Live<th scope=\"col\">Growth per hour<th scope=\"col\">Line that holds the most</tr></thead>\n<tbody>\n",
    );
    for (replica, outlier) in fleet.replicas.iter().zip(fleet.outliers()) {
        let share = 100.0 * replica.live.unwrap_or(0) as f64 / largest as f64;
        let _ = write!(body, "<tr><th scope=\"row\">{}", text(&replica.name));
        let _ = write!(body, "<td>{}", text(&replica.build));
        let rss = replica.rss.map_or("–".into(), size);
        cell(&mut body, "RSS", &rss, outlier.rss);
        let held = format!(
            "{}<span class=\"bar\" style=\"width:{share:.1}%\"></span>",
            live(replica, "≈ ")
        );
        cell(&mut body, "Live", &held, outlier.live);
        let grown = growth(replica.growth_per_hour);
        cell(&mut body, "Growth/h", &grown, outlier.growth);
        let _ = writeln!(body, "<td>{}</tr>", top(replica));
    }
    body.push_str("</tbody></table></div>\n");
    body.push_str("<p class=\"note\">Marked figures are far above the median of all. ≈: estimates from samples.</p>\n");
    for (what, who) in [
        ("No answer", &fleet.silent),
        ("Not merged", &fleet.not_merged),
    ] {
        if who.is_empty() {
            continue;
        }
        let _ = writeln!(body, "<h2>{what}</h2>\n<ul>");
        for of in who {
            let (of_whom, why) = (text(&of.of_whom()), text(&of.why));
            let _ = writeln!(body, "<li><b>{of_whom}</b>: {why}");
        }
        body.push_str("</ul>\n");
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Memory of the fleet</title>\n<style>\n{STYLE}</style>\n<main>\n{body}</main>\n</html>\n"
    )
}

/// Adds a figure, which is HTML, marked if it stands out. Narrow pages have its name beside it instead of above the column.
fn cell(body: &mut String, name: &str, html: &str, marked: bool) {
    let (class, said) = if marked {
        ("number marked", "<span class=\"hidden\"> stands out</span>")
    } else {
        ("number", "")
    };
    let _ = write!(
        body,
        "<td class=\"{class}\" data-of=\"{name}\">{html}{said}"
    );
}

fn top(replica: &Replica) -> String {
    let state = if replica.is_running() {
        String::new()
    } else {
        format!(" ({})", text(&replica.state))
    };
    let Some(line) = &replica.top else {
        return format!("–{state}");
    };
    format!(
        "<code>{}</code>{state}<span class=\"place\">{} · {}</span>",
        text(&line.function),
        text(&position(&line.file, line.line)),
        size(line.live)
    )
}

/// Returns `text` as HTML.
fn text(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            character if character.is_control() => html.push('\u{fffd}'),
            character => html.push(character),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::figures::tests::replica;
    use crate::fleet::shown::tests::silent;

    #[test]
    fn names_cannot_become_tags() {
        let mut hostile = replica("<script>alert(1)</script>", 1);
        hostile.build = "\"><img src=x onerror=alert(1)>\u{1b}".into();
        let fleet = Fleet {
            replicas: vec![hostile],
            silent: vec![silent("<b>", "'</style>")],
            comparison: None,
            no_comparison: Some("<script>".into()),
            not_merged: vec![silent("<script>", "<img>")],
        };
        let page = page(&fleet);
        for bad in ["<script", "<img", "</style>'", "\u{1b}"] {
            assert!(!page.contains(bad), "{bad}");
        }
        assert_eq!(page.matches("</style>").count(), 1);
    }
}
