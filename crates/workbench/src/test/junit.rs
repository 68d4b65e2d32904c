//! The report as JUnit writes it, for CI. The writer is our own: the crate for it brings an XML library, a clock and random
//! ids for these forty lines.

use super::run::{FileReport, Report, TestReport};
use std::fmt::Write;

/// The document. `told` gives the words for a test that failed.
pub fn document(report: &Report, told: impl Fn(&FileReport, &TestReport) -> String) -> String {
    let (tests, failed) = (report.n_tests(), report.n_failed());
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // writing to a String cannot fail
    let _ =
        writeln!(xml, "<testsuites name=\"hookgate\" tests=\"{tests}\" failures=\"{failed}\" errors=\"0\">");
    for file in &report.files {
        let (name, n, failed) = (escaped(&file.name), file.tests.len(), file.n_failed());
        let seconds = file.took.as_secs_f64();
        let _ = writeln!(
            xml,
            "  <testsuite name=\"{name}\" tests=\"{n}\" failures=\"{failed}\" errors=\"0\" time=\"{seconds:.3}\">"
        );
        for test in &file.tests {
            let (case, seconds) = (escaped(&test.name), test.took.as_secs_f64());
            let _ = write!(xml, "    <testcase name=\"{case}\" classname=\"{name}\" time=\"{seconds:.3}\"");
            if test.passed() {
                xml.push_str("/>\n");
            } else {
                let text = escaped(&told(file, test));
                let _ = writeln!(
                    xml,
                    ">\n      <failure message=\"not as expected\">{text}</failure>\n    </testcase>"
                );
            }
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

/// The text as it may stand in XML: marks escaped, characters that XML cannot hold replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_the_document() {
        assert_eq!(
            escaped("<a b=\"c\">&\n\u{0}\u{1b}]]>"),
            "&lt;a b=&quot;c&quot;&gt;&amp;\n\u{fffd}\u{fffd}]]&gt;"
        );
    }
}
