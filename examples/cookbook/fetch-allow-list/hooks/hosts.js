// A host, or with a dot in front a host and all below it.
const ALLOWED = ["docs.rs", "crates.io", ".python.org", "developer.mozilla.org"];

// Plain addresses only: whatever is written in another way is not worth a guess.
const PLAIN = /^https:\/\/([a-z0-9.-]+)(:443)?([/?#].*)?$/;

function allowed(url) {
  const found = typeof url === "string" && PLAIN.exec(url);
  if (!found) return false;
  const host = found[1];
  return ALLOWED.some((entry) =>
    entry.startsWith(".") ? host.endsWith(entry) || host === entry.slice(1) : host === entry);
}

function handle(event) {
  const { url, urls } = event.toolInput;
  const all = Array.isArray(urls) ? urls : [url];
  const bad = all.filter((each) => !allowed(each));
  if (all.length === 0 || bad.length > 0) {
    return { decision: "block", reason: "not on the list of hosts: " + bad.join(", ") };
  }
  return { decision: "allow" };
}
