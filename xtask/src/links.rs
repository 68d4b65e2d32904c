//! Links that lead nowhere: in the built book (pages, files and anchors), and in the Markdown of the repository (files).
//! Also pages that the book's contents forget.
//! Addresses of other hosts are not looked at: nothing here uses a network.

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

/// The links of all pages below `book` that lead nowhere, each as `page: link`.
///
/// # Errors
/// A page cannot be read.
pub fn of_the_book(book: &Path) -> io::Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for path in files(book, "html")? {
        let text = std::fs::read_to_string(&path)?;
        // its links are meant from wherever something is missing
        if path != book.join("404.html") {
            pages.insert(path, Page::read(&text));
        }
    }
    let mut broken = Vec::new();
    for (path, page) in &pages {
        for link in &page.links {
            if !leads_somewhere(link, path, &pages) {
                let name = path.strip_prefix(book).unwrap_or(path).display();
                broken.push(format!("{name}: {link}"));
            }
        }
    }
    if pages.is_empty() {
        broken.push(format!("{}: there is no page", book.display()));
    }
    Ok(broken)
}

/// The links of the Markdown files of a repository that name no file, each as `file: link`.
///
/// # Errors
/// A file cannot be read.
pub fn of_the_repository(root: &Path) -> io::Result<Vec<String>> {
    let mut paths = files(&root.join("docs"), "md")?;
    paths.extend(files(&root.join("examples"), "md")?);
    for entry in std::fs::read_dir(root)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "md") {
            paths.push(path);
        }
    }
    let mut broken = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)?;
        for link in links_of_markdown(&text) {
            let (file, _) = link.split_once('#').unwrap_or((&link, ""));
            if !file.is_empty() && !beside(&path, file).exists() {
                broken.push(format!("{}: {link}", path.strip_prefix(root).unwrap_or(&path).display()));
            }
        }
    }
    Ok(broken)
}

/// The pages below `docs` that the book's contents do not name: they would not be in it.
///
/// # Errors
/// The contents cannot be read.
pub fn missing_in_the_contents(docs: &Path) -> io::Result<Vec<String>> {
    let contents = std::fs::read_to_string(docs.join("SUMMARY.md"))?;
    let named: BTreeSet<String> = links_of_markdown(&contents).into_iter().collect();
    let pages = files(docs, "md")?;
    let names = pages.iter().filter_map(|page| Some(page.strip_prefix(docs).ok()?.to_str()?.to_owned()));
    Ok(names.filter(|name| name != "SUMMARY.md" && !named.contains(name)).collect())
}

/// What a page of the book links to, and what can be linked to in it.
struct Page {
    links: BTreeSet<String>,
    anchors: BTreeSet<String>,
}

impl Page {
    fn read(html: &str) -> Page {
        let found = |pattern: &str| -> BTreeSet<String> {
            let Ok(pattern) = Regex::new(pattern) else { return BTreeSet::new() };
            pattern.captures_iter(html).filter_map(|found| Some(plain(found.get(1)?.as_str()))).collect()
        };
        let mut links = found(r#"\s(?:href|src)="([^"]*)""#);
        links.retain(|link| is_ours(link));
        Page { links, anchors: found(r#"\s(?:id|name)="([^"]*)""#) }
    }
}

fn leads_somewhere(link: &str, from: &Path, pages: &BTreeMap<PathBuf, Page>) -> bool {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let file = file.split('?').next().unwrap_or_default();
    let target = if file.is_empty() { from.to_owned() } else { beside(from, file) };
    match pages.get(&target) {
        Some(page) => anchor.is_empty() || page.anchors.contains(anchor),
        None => target.is_file(),
    }
}

/// The links of a Markdown text that stand outside of code.
fn links_of_markdown(text: &str) -> Vec<String> {
    let mut prose = String::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code && !line.starts_with("    ") {
            // `a[b](c)` in a code span is no link
            let outside = line.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "`" });
            prose.extend(outside);
            prose.push('\n');
        }
    }
    let Ok(pattern) = Regex::new(r"\]\(([^)\s]+)\)") else { return Vec::new() };
    let links = pattern.captures_iter(&prose).filter_map(|found| Some(found.get(1)?.as_str().to_owned()));
    links.filter(|link| is_ours(link)).collect()
}

fn is_ours(link: &str) -> bool {
    !["http:", "https:", "mailto:", "data:", "javascript:"].iter().any(|scheme| link.starts_with(scheme))
}

/// The path of `link` in a file, without `.` and `..`.
fn beside(file: &Path, link: &str) -> PathBuf {
    let mut path = file.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    path
}

fn plain(attribute: &str) -> String {
    attribute.replace("&quot;", "\"").replace("&#x27;", "'").replace("&lt;", "<").replace("&amp;", "&")
}

/// All files below a folder whose names end so, in order.
fn files(folder: &Path, end: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == end) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which links of `a.html` are told, with a page and a picture beside it.
    fn check(body: &str, expected: &[&str]) {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        write("a.html", body);
        write("sub/b.html", r#"<h2 id="there">x</h2><a href="../a.html">back</a>"#);
        write("p.png", "");
        let broken = of_the_book(dir.path()).unwrap();
        let expected: Vec<String> = expected.iter().map(|link| format!("a.html: {link}")).collect();
        assert_eq!(broken, expected, "{body}");
    }

    #[test]
    fn links_anchors_and_pictures_are_followed() {
        check(
            r#"<a href="sub/b.html#there">x</a><img src="p.png"><a href="https://example.com/no">x</a>"#,
            &[],
        );
        check(r##"<h1 id="top">x</h1><a href="#top">x</a><a href="#bottom">x</a>"##, &["#bottom"]);
        check(r#"<a href="sub/b.html#here">x</a>"#, &["sub/b.html#here"]);
        check(r#"<a href="sub/c.html">x</a><img src="q.png">"#, &["q.png", "sub/c.html"]);
        check(r#"<a href="sub/">x</a>"#, &["sub/"]);
    }

    #[test]
    fn links_in_code_are_none() {
        let text = "[a](a.md)\n```\n[b](b.md)\n```\n`x[c](c.md)` and [d](d.md#e) [f](https://example.com)\n\n    [g](g.md)\n";
        assert_eq!(links_of_markdown(text), ["a.md", "d.md#e"]);
    }

    #[test]
    fn links_of_this_repository_lead_somewhere() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let broken = of_the_repository(&root.canonicalize().unwrap()).unwrap();
        assert_eq!(broken, Vec::<String>::new());
    }

    #[test]
    fn every_page_is_in_the_book() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        assert_eq!(missing_in_the_contents(&docs).unwrap(), Vec::<String>::new());
    }
}
