//! `cargo xtask corpus PATH…` runs test vectors and cases through the real code, `cargo xtask ci` what CI runs,
//! `cargo xtask book` builds the site, `cargo xtask package` looks at what would be published.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    if hookgate_handlers::script::is_worker() {
        return hookgate_handlers::script::worker_main();
    }
    if xtask::corpus::is_program() {
        return xtask::corpus::program();
    }
    if xtask::corpus::is_case_process() {
        return xtask::corpus::case_process();
    }
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let paths: Vec<PathBuf> = args.map(PathBuf::from).collect();
    let mut out = std::io::stdout().lock();
    match command.as_deref() {
        Some("corpus") if !paths.is_empty() => match xtask::corpus::run(&paths, &mut out) {
            Ok(tally) if tally.failed == 0 => ExitCode::SUCCESS,
            Ok(_) => ExitCode::FAILURE,
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "error: {error}");
                ExitCode::from(2)
            }
        },
        Some("score") if paths.len() == 2 => xtask::score::main(&paths, &mut out),
        Some("ci") if paths.is_empty() => match xtask::ci::run(&mut out) {
            Ok(failed) if failed.is_empty() => ExitCode::SUCCESS,
            Ok(failed) => {
                let _ = writeln!(std::io::stderr(), "\nfailed: {}", failed.join(", "));
                ExitCode::FAILURE
            }
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "error: {error}");
                ExitCode::from(2)
            }
        },
        Some("book") if paths.is_empty() => told(xtask::book::run(&mut out)),
        Some("sbom") if paths.len() == 2 => {
            let [target, file] = paths.as_slice() else { return ExitCode::from(2) };
            told(xtask::sbom::run(&target.to_string_lossy(), file).map(|()| true))
        }
        Some("package") if paths.is_empty() => told(xtask::package::run(&mut out)),
        _ => {
            let _ = writeln!(
                std::io::stderr(),
                "usage: cargo xtask ci | cargo xtask book | cargo xtask package | cargo xtask sbom TARGET FILE | cargo xtask corpus PATH... | cargo xtask score commands|secrets FILE"
            );
            ExitCode::from(2)
        }
    }
}

/// A check that has told what is wrong, as an exit code.
fn told(result: std::io::Result<bool>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}
