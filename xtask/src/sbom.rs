//! `cargo xtask sbom TARGET FILE`: the bill of materials of the program, as CycloneDX 1.6 in JSON.
//!
//! Made from `cargo metadata` and `Cargo.lock`: what is linked into `hookgate` for the target and what its build needs,
//! nothing that only tests use. The tools that do this are a build of several minutes; what is asked for is a graph that
//! cargo prints. Same input, same bytes: there is no time and no random number in it.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::process::Command;

/// Writes the bill for a target to a file.
///
/// # Errors
/// cargo cannot tell, or the file cannot be written.
pub fn run(target: &str, file: &Path) -> io::Result<()> {
    let args = ["metadata", "--locked", "--format-version", "1", "--filter-platform", target];
    let output = Command::new(crate::ci::cargo_program()).args(args).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let root = metadata.get("workspace_root").and_then(Value::as_str).unwrap_or(".");
    let lock = std::fs::read_to_string(Path::new(root).join("Cargo.lock"))?;
    let bill = bill(&metadata, &checksums(&lock), "hookgate")
        .ok_or_else(|| io::Error::other("there is no hookgate"))?;
    let mut text = serde_json::to_string_pretty(&bill)?;
    text.push('\n');
    std::fs::write(file, text)
}

/// SHA-256 of packages, by name and version, as the lock file has them.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut sums = BTreeMap::new();
    for part in lock.split("[[package]]") {
        let value = |key: &str| {
            let line = part.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
            line.strip_suffix('"').map(str::to_owned)
        };
        if let (Some(name), Some(version), Some(sum)) = (value("name"), value("version"), value("checksum")) {
            sums.insert((name, version), sum);
        }
    }
    sums
}

/// The bill of the package with this name.
fn bill(metadata: &Value, sums: &BTreeMap<(String, String), String>, name: &str) -> Option<Value> {
    let packages: BTreeMap<&str, &Value> =
        list(metadata.get("packages")).filter_map(|package| Some((text(package, "id")?, package))).collect();
    let nodes: BTreeMap<&str, &Value> = list(metadata.get("resolve")?.get("nodes"))
        .filter_map(|node| Some((text(node, "id")?, node)))
        .collect();
    let root = packages.iter().find(|(_, package)| text(package, "name") == Some(name)).map(|(id, _)| *id)?;
    let mut reached = BTreeSet::from([root]);
    let mut open = vec![root];
    let mut graph = BTreeMap::new();
    while let Some(id) = open.pop() {
        let needs = nodes.get(id).map(|node| needed(node)).unwrap_or_default();
        open.extend(needs.iter().copied().filter(|need| reached.insert(need)));
        graph.insert(id, needs);
    }
    let url = |id: &str| packages.get(id).and_then(|package| purl(package));
    let components: Vec<Value> = reached
        .iter()
        .filter(|id| **id != root)
        .filter_map(|id| component("library", packages.get(id)?, sums))
        .collect();
    let dependencies: Vec<Value> = graph
        .iter()
        .filter_map(|(id, needs)| {
            let needs: BTreeSet<String> = needs.iter().filter_map(|need| url(need)).collect();
            Some(json!({"ref": url(id)?, "dependsOn": needs}))
        })
        .collect();
    Some(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": component("application", packages.get(root)?, sums)? },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// What a node needs to be built and run; not what its tests need.
fn needed(node: &Value) -> BTreeSet<&str> {
    let counts = |need: &Value| list(need.get("dep_kinds")).any(|kind| text(kind, "kind") != Some("dev"));
    list(node.get("deps")).filter(|need| counts(need)).filter_map(|need| text(need, "pkg")).collect()
}

fn component(kind: &str, package: &Value, sums: &BTreeMap<(String, String), String>) -> Option<Value> {
    let (name, version) = (text(package, "name")?, text(package, "version")?);
    let url = purl(package)?;
    let mut component = json!({
        "type": kind, "bom-ref": url, "name": name, "version": version, "purl": url,
    });
    let mut add = |key: &str, value: Value| {
        if let Some(members) = component.as_object_mut() {
            members.insert(key.to_owned(), value);
        }
    };
    if let Some(about) = text(package, "description") {
        add("description", about.trim().into());
    }
    if let Some(licence) = text(package, "license") {
        // cargo still takes the old way to write "or"
        add("licenses", json!([{ "expression": licence.replace('/', " OR ").replace("  ", " ") }]));
    }
    if let Some(sum) = sums.get(&(name.to_owned(), version.to_owned())) {
        add("hashes", json!([{ "alg": "SHA-256", "content": sum }]));
    }
    if let Some(repository) = text(package, "repository") {
        add("externalReferences", json!([{ "type": "vcs", "url": repository }]));
    }
    Some(component)
}

fn purl(package: &Value) -> Option<String> {
    // a build number's plus would be read as a blank
    let version = text(package, "version")?.replace('+', "%2B");
    Some(format!("pkg:cargo/{}@{version}", text(package, "name")?))
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tests_need_is_not_in_it() {
        let package =
            |name: &str| json!({"id": name, "name": name, "version": "1.0.0+b", "license": "MIT/Apache-2.0"});
        let dep = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{ "kind": kind }]});
        let metadata = json!({
            "packages": [package("app"), package("lib"), package("cc"), package("mock"), package("other")],
            "resolve": { "nodes": [
                { "id": "app", "deps": [dep("lib", Value::Null), dep("mock", "dev".into())] },
                { "id": "lib", "deps": [dep("cc", "build".into())] },
                { "id": "other", "deps": [] },
            ]},
        });
        let lock = "version = 4\n[[package]]\nname = \"lib\"\nversion = \"1.0.0+b\"\nchecksum = \"ab12\"\n";
        let bill = bill(&metadata, &checksums(lock), "app").unwrap();
        let names: Vec<&str> = list(bill.get("components")).filter_map(|one| text(one, "name")).collect();
        assert_eq!(names, ["cc", "lib"]);
        assert_eq!(bill["metadata"]["component"]["purl"], "pkg:cargo/app@1.0.0%2Bb");
        assert_eq!(bill["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bill["components"][1]["hashes"][0]["content"], "ab12");
        assert_eq!(
            bill["dependencies"][0],
            json!({"ref": "pkg:cargo/app@1.0.0%2Bb", "dependsOn": ["pkg:cargo/lib@1.0.0%2Bb"]})
        );
    }
}
