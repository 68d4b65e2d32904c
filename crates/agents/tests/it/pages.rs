//! The pages under `docs/agents` say what the table says. `HOOKGATE_UPDATE=1` writes them anew.

use hookgate_agents::{page, table};
use std::path::PathBuf;

#[test]
fn are_current() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents");
    for agent in table::ALL {
        let path = folder.join(format!("{}.md", agent.name()));
        let page = page(*agent);
        if std::env::var_os("HOOKGATE_UPDATE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, page).unwrap();
        } else {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(text == page, "{} is not current", path.display());
        }
    }
}
