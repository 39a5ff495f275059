//! `--export`: results as JSON, CSV, Markdown or a page with plots.
//!
//! Knows: the formats. Must not know: what was measured.
use super::failure::Failure;
use super::output::{Report, Table};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// A line of a plot: points in order.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// A plot.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub(super) title: String,
    pub(super) x: &'static str,
    pub(super) y: String,
    /// The x axis is logarithmic.
    pub(super) log_x: bool,
    /// Points are joined by lines.
    pub(super) joined: bool,
    pub(super) lines: Vec<Line>,
}

/// The formats, by a file's extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Csv,
    Markdown,
    Html,
}

fn format_of(path: &Path) -> Result<Format, Failure> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Ok(Format::Json),
        Some("csv") => Ok(Format::Csv),
        Some("md") => Ok(Format::Markdown),
        Some("html" | "htm") => Ok(Format::Html),
        _ => Err(Failure::usage(format!(
            "--export {}: the name ends in .json, .csv, .md or .html",
            path.display()
        ))),
    }
}

/// Checks the names before anything is measured.
pub(super) fn check(paths: &[std::path::PathBuf]) -> Result<(), Failure> {
    paths
        .iter()
        .try_for_each(|path| format_of(path).map(|_format| ()))
}

/// Writes a result into every file.
pub(super) fn write(
    paths: &[std::path::PathBuf],
    title: &str,
    report: &dyn Report,
    plots: &[Plot],
) -> Result<(), Failure> {
    for path in paths {
        let text = match format_of(path)? {
            Format::Json => {
                serde_json::to_string_pretty(&Value::Object(report.json())).unwrap_or_default()
                    + "\n"
            }
            Format::Csv => {
                let mut out = Vec::new();
                report.csv().write_csv(&mut out).ok();
                String::from_utf8_lossy(&out).into_owned()
            }
            Format::Markdown => format!("# {title}\n\n{}", markdown(&report.csv())),
            Format::Html => page(title, report, plots),
        };
        std::fs::write(path, text).map_err(|error| Failure::io("write", path, &error))?;
    }
    Ok(())
}

fn markdown(table: &Table) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(&table.header);
    text.push_str(&line(&vec![String::from("---"); table.header.len()]));
    table.rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A number for people: digits that no clock has are left out.
fn rounded(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(value) if cell.contains('.') && value.abs() >= 100.0 => format!("{value:.0}"),
        Ok(value) if cell.contains('.') => format!("{value:.2}"),
        _ => cell.to_owned(),
    }
}

/// The value at the top of the y axis: of single samples no more than what nearly all of them show, so that a few that were
/// disturbed do not press the others to the ground.
fn top(plot: &Plot) -> f64 {
    let mut values: Vec<f64> = plot
        .lines
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point.1))
        .collect();
    values.sort_by(f64::total_cmp);
    let most = values.last().copied().unwrap_or(0.0).max(0.0);
    let nearly_all = values.get(values.len().saturating_sub(1) * 99 / 100);
    match nearly_all {
        Some(value) if !plot.joined && *value > 0.0 && most > 4.0 * value => 1.5 * value,
        _ => most,
    }
}

/// A page that needs no other file: a table, plots as SVG, the JSON at the end.
fn page(title: &str, report: &dyn Report, plots: &[Plot]) -> String {
    let table = report.csv();
    let mut rows = String::new();
    for (row, tag) in
        std::iter::once((&table.header, "th")).chain(table.rows.iter().map(|row| (row, "td")))
    {
        rows.push_str("<tr>");
        for cell in row {
            write!(rows, "<{tag}>{}</{tag}>", escape(&rounded(cell))).ok();
        }
        rows.push_str("</tr>\n");
    }
    let plots: String = plots.iter().map(svg).collect();
    let json = serde_json::to_string(&Value::Object(report.json())).unwrap_or_default();
    // Inside a script element only its end tag has to be kept out.
    let json = json.replace("</", "<\\/");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<div><table>\n{rows}</table></div>\n{plots}<script type=\"application/json\" id=\"result\">{json}</script>\n</body>\n</html>\n",
        title = escape(title),
    )
}

const STYLE: &str =
    "body { font: 14px system-ui, sans-serif; margin: 2em; color: #222; background: #fff; }
div { overflow-x: auto; }
table { border-collapse: collapse; margin-bottom: 2em; }
th, td { border: 1px solid #ccc; padding: 0.2em 0.6em; text-align: right; }
th:first-child, td:first-child { text-align: left; }
figure { display: inline-block; margin: 0 2em 2em 0; }
figcaption { font-weight: 600; }
svg text { font: 11px system-ui, sans-serif; fill: #444; }
";

const COLOURS: [&str; 8] = [
    "#0b62a4", "#d1495b", "#2e8b57", "#edae49", "#6a4c93", "#00798c", "#8d6e63", "#444444",
];
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 42.0;
/// Marks on an axis.
const TICKS: u32 = 5;

fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e9 => format!("{:.2}G", value / 1e9),
        v if v >= 1e6 => format!("{:.2}M", value / 1e6),
        v if v >= 1e3 => format!("{:.2}k", value / 1e3),
        v if v >= 10.0 || v == 0.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3e}"),
    }
}

/// A plot as an SVG figure. The y axis begins at 0.
fn svg(plot: &Plot) -> String {
    let scale = |x: f64| if plot.log_x { x.max(1.0).log2() } else { x };
    let points = || plot.lines.iter().flat_map(|line| &line.points);
    let fold = |of: &dyn Fn(&(f64, f64)) -> f64, start: f64, with: fn(f64, f64) -> f64| {
        points().map(of).fold(start, with)
    };
    let (x0, x1) = (
        fold(&|p| scale(p.0), f64::INFINITY, f64::min),
        fold(&|p| scale(p.0), f64::NEG_INFINITY, f64::max),
    );
    let y1 = top(plot);
    if !x0.is_finite() || !x1.is_finite() {
        return String::new();
    }
    let (x_range, y_range) = ((x1 - x0).max(1e-9), y1.max(1e-9));
    let at = |(x, y): (f64, f64)| {
        (
            LEFT + (scale(x) - x0) / x_range * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - (y / y_range).min(1.0) * (HEIGHT - TOP - BOTTOM),
        )
    };
    let mut text = format!(
        "<figure>\n<figcaption>{}</figcaption>\n<svg width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
        escape(&plot.title),
        escape(&plot.title)
    );
    for tick in 0..=TICKS {
        let part = f64::from(tick) / f64::from(TICKS);
        let y = HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
        let x = LEFT + part * (WIDTH - LEFT - RIGHT);
        let x_value = x0 + part * x_range;
        let x_value = if plot.log_x { x_value.exp2() } else { x_value };
        writeln!(
            text,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            short(part * y_range),
            HEIGHT - BOTTOM + 16.0,
            short(x_value),
        )
        .ok();
    }
    writeln!(
        text,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text x=\"12\" y=\"{}\" text-anchor=\"middle\" transform=\"rotate(-90 12 {})\">{}</text>",
        f64::midpoint(LEFT, WIDTH),
        HEIGHT - 8.0,
        escape(plot.x),
        HEIGHT / 2.0,
        HEIGHT / 2.0,
        escape(&plot.y)
    )
    .ok();
    for (index, line) in plot.lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let places: Vec<(f64, f64)> = line.points.iter().map(|point| at(*point)).collect();
        if plot.joined {
            let path: Vec<String> = places
                .iter()
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            writeln!(
                text,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{}\"/>",
                path.join(" ")
            )
            .ok();
        }
        // samples at one place are one mark
        let marks: BTreeSet<(i64, i64)> = places
            .iter()
            .map(|(x, y)| (x.round() as i64, y.round() as i64))
            .collect();
        for (x, y) in marks {
            write!(
                text,
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"2\" fill=\"{colour}\"/>"
            )
            .ok();
        }
        writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" style=\"fill:{colour}\">{}</text>",
            LEFT + 8.0,
            TOP + 12.0 * (index as f64 + 1.0),
            escape(&line.name)
        )
        .ok();
    }
    let above = points().filter(|point| point.1 > y1).count();
    if above > 0 {
        writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">samples above: {above}</text>",
            WIDTH - RIGHT,
            TOP + 12.0
        )
        .ok();
    }
    text.push_str("</svg>\n</figure>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::{Line, Plot, rounded, svg, top};

    fn plot(values: impl IntoIterator<Item = f64>) -> Plot {
        Plot {
            title: String::from("t"),
            x: "sample",
            y: String::from("ns"),
            log_x: false,
            joined: false,
            lines: vec![Line {
                name: String::from("a"),
                points: (0..).map(f64::from).zip(values).collect(),
            }],
        }
    }

    #[test]
    fn numbers_lose_the_digits_that_no_clock_has() {
        assert_eq!(rounded("1193.0599999999686"), "1193");
        assert_eq!(rounded("2.71828"), "2.72");
        assert_eq!(rounded("861"), "861");
        assert_eq!(rounded("packet=kernel 1.5"), "packet=kernel 1.5");
    }

    #[test]
    fn few_disturbed_samples_do_not_set_the_scale() {
        // 199 samples of 10 and one of 1000
        let disturbed = plot(std::iter::repeat_n(10.0, 199).chain([1000.0]));
        assert_eq!(top(&disturbed), 15.0);
        assert!(svg(&disturbed).contains("samples above: 1<"));
        // none stands out
        assert_eq!(top(&plot([10.0, 20.0, 30.0])), 30.0);
        assert!(!svg(&plot([10.0, 20.0, 30.0])).contains("samples above"));
        assert_eq!(top(&plot([])), 0.0);
        // a curve shows all of itself
        let curve = Plot {
            joined: true,
            ..disturbed
        };
        assert_eq!(top(&curve), 1000.0);
    }

    #[test]
    fn equal_samples_are_one_mark() {
        let text = svg(&plot(std::iter::repeat_n(10.0, 100_000)));
        let marks = text.matches("<circle").count();
        assert!((2..=520).contains(&marks), "{marks}");
    }
}
