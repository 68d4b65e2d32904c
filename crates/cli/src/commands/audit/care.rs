//! `audit prune`, `audit forget` and `audit rekey`.

use super::{filter, now, of_store};
use crate::data::DataDir;
use crate::exit::Exit;
use crate::failure::Failure;
use hookgate_store::audit::Audit;
use std::io::{self, Write};

pub(super) fn prune(audit: &mut Audit, keep: Option<&str>) -> Result<Exit, Failure> {
    let Some(keep) = keep else {
        return Err(Failure::new("for how long are rows kept? give --keep 90d, or `keep` under [audit]"));
    };
    let Some(age) = filter::age(keep) else {
        return Err(Failure::new(format!("`{keep}` is no time; expected an age such as 12h or 90d")));
    };
    let n = audit.prune(now().saturating_sub(age)).map_err(of_store)?;
    writeln!(io::stdout().lock(), "{n} rows older than {keep} were deleted")?;
    Ok(Exit::Done)
}

pub(super) fn forget(audit: &mut Audit, hook: &str) -> Result<Exit, Failure> {
    let n = audit.forget_hook(hook).map_err(of_store)?;
    if n == 0 {
        return Err(Failure::new(format!("the trail knows no hook with the id `{hook}`")));
    }
    writeln!(
        io::stdout().lock(),
        "the rows of {hook} keep its label and no longer name it as a hook that is there"
    )?;
    Ok(Exit::Done)
}

pub(super) fn rekey(audit: &mut Audit, place: &DataDir) -> Result<Exit, Failure> {
    let (keys, n) = audit.rekey().map_err(of_store)?;
    let file = place.key_file().display();
    let newest = keys.newest();
    writeln!(
        io::stdout().lock(),
        "{n} details are sealed with the new key {newest} in {file}; the old ones stay there"
    )?;
    Ok(Exit::Done)
}
