//! Growth as a picture: memory and time over the number of groups, as SVG.

use std::fmt::Write;

use super::in_process::Growth;

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 36.0;
const BETWEEN: f64 = 90.0;

/// Two charts side by side.
pub fn svg(points: &[Growth]) -> String {
    let memory = points
        .iter()
        .map(|point| (f64::from(point.groups), point.memory_mib));
    let time = points
        .iter()
        .map(|point| (f64::from(point.groups), point.once_milliseconds));
    let charts = [
        chart(
            LEFT,
            "Memory of all objects (MiB)",
            &memory.collect::<Vec<_>>(),
        ),
        chart(
            LEFT + WIDTH + BETWEEN,
            "All reconciles once (ms)",
            &time.collect::<Vec<_>>(),
        ),
    ];
    let (width, height) = (LEFT + 2.0 * WIDTH + BETWEEN + 20.0, TOP + HEIGHT + 48.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n{}</svg>\n",
        charts.concat()
    )
}

fn chart(left: f64, title: &str, points: &[(f64, f64)]) -> String {
    let most =
        |value: fn(&(f64, f64)) -> f64| points.iter().map(value).fold(f64::MIN_POSITIVE, f64::max);
    let (most_x, most_y) = (most(|point| point.0), most(|point| point.1));
    let (bottom, right) = (TOP + HEIGHT, left + WIDTH);
    let place = |(x, y): &(f64, f64)| (left + x / most_x * WIDTH, bottom - y / most_y * HEIGHT);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut put = |line: String| {
        let _ = writeln!(text, "{line}");
    };
    put(format!(
        "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{title}</text>",
        TOP - 14.0
    ));
    put(format!(
        "<path d=\"M{left} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#444\"/>"
    ));
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (x, y) = place(&(part * most_x, part * most_y));
        let (groups, value) = (part * most_x, part * most_y);
        put(format!(
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{groups:.0}</text>",
            bottom + 18.0
        ));
        put(format!(
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.1}</text>",
            left - 6.0,
            y + 4.0
        ));
    }
    put(format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">groups of 8 pods</text>",
        left + WIDTH / 2.0,
        bottom + 38.0
    ));
    let line: Vec<String> = points
        .iter()
        .map(&place)
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    put(format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#1f6feb\" stroke-width=\"2\"/>",
        line.join(" ")
    ));
    for (x, y) in points.iter().map(place) {
        put(format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"#1f6feb\"/>"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_value_is_in_the_upper_right_corner() {
        let chart = chart(LEFT, "T", &[(1.0, 5.0), (2.0, 10.0)]);
        assert!(
            chart.contains("points=\"230.0,136.0 400.0,36.0\""),
            "{chart}"
        );
        assert_eq!(chart.matches("<circle").count(), 2);
    }
}
