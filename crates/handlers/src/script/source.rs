//! A script's text: where it comes from and what it may be.

use hookgate_core::handler::ScriptText;
use std::io::Read;
use std::path::{Component, Path};

/// The longest source, in bytes.
pub(super) const LONGEST: usize = 32 * 1024;

/// The text of a script. A file is meant from `folder`, and may not lead out of it.
pub(super) fn text(text: &ScriptText, folder: &Path) -> Result<String, String> {
    let source = match text {
        ScriptText::Inline(source) => source.clone(),
        ScriptText::File(file) => read(file, folder)?,
    };
    if source.len() > LONGEST {
        return Err(format!("the script has {} bytes; at most {LONGEST} are allowed", source.len()));
    }
    if source.trim_start_matches('\u{feff}').trim().is_empty() {
        return Err("the script is empty".into());
    }
    Ok(source)
}

fn read(file: &str, folder: &Path) -> Result<String, String> {
    let about = |why: &str| format!("the script file `{file}` {why}");
    let path = Path::new(file);
    let inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside || file.is_empty() {
        return Err(about("leads out of the hook file's folder"));
    }
    let plain = |error: std::io::Error| {
        let text = error.to_string();
        about(&format!("cannot be read: {}", text.split(" (os error").next().unwrap_or(&text).to_lowercase()))
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let root = folder.canonicalize().map_err(plain)?;
    let path = root.join(path).canonicalize().map_err(plain)?;
    if !path.starts_with(&root) {
        return Err(about("is a link that leads out of the hook file's folder"));
    }
    // a pipe would be waited for, a device never ends
    if !path.metadata().map_err(plain)?.is_file() {
        return Err(about("is no regular file"));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(LONGEST).unwrap_or(u64::MAX).saturating_add(1);
    std::fs::File::open(&path).map_err(plain)?.take(most).read_to_end(&mut bytes).map_err(plain)?;
    if bytes.len() > LONGEST {
        return Err(about(&format!("is longer than {LONGEST} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|error| about(&format!("is not UTF-8 (byte {})", error.utf8_error().valid_up_to())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(folder: &Path, file: &str, expected: &str) {
        match text(&ScriptText::File(file.into()), folder) {
            Ok(text) => assert_eq!(text, expected),
            Err(why) => assert!(why.contains(expected), "{why}"),
        }
    }

    #[test]
    fn files_stay_in_their_folder() {
        let dir = tempfile::tempdir().unwrap();
        let hooks = dir.path().join("hooks");
        std::fs::create_dir_all(hooks.join("sub")).unwrap();
        std::fs::write(hooks.join("sub/a.js"), "a").unwrap();
        std::fs::write(hooks.join("bad.js"), b"ab\xff").unwrap();
        std::fs::write(hooks.join("long.js"), vec![b' '; LONGEST + 1]).unwrap();
        std::fs::write(dir.path().join("out.js"), "out").unwrap();
        std::os::unix::fs::symlink(dir.path().join("out.js"), hooks.join("link.js")).unwrap();
        std::os::unix::fs::symlink("sub/a.js", hooks.join("inner.js")).unwrap();
        check(&hooks, "sub/a.js", "a");
        check(&hooks, "./inner.js", "a");
        check(&hooks, "../out.js", "leads out");
        check(&hooks, "sub/../../out.js", "leads out");
        check(&hooks, "link.js", "leads out");
        check(&hooks, hooks.join("sub/a.js").to_str().unwrap(), "leads out");
        check(&hooks, "", "leads out");
        check(&hooks, "sub", "no regular file");
        check(&hooks, "gone.js", "no such file");
        check(&hooks, "bad.js", "not UTF-8 (byte 2)");
        check(&hooks, "long.js", "longer than 32768 bytes");
    }

    #[test]
    fn a_source_has_a_size() {
        let inline = |source: String| text(&ScriptText::Inline(source), Path::new("."));
        assert!(inline(" ".repeat(10)).is_err());
        assert!(inline("\u{feff}".into()).is_err());
        assert!(inline("a".repeat(LONGEST)).is_ok());
        assert!(inline("é".repeat(LONGEST / 2 + 1)).is_err());
    }
}
