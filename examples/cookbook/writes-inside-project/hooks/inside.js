// Paths from the root are fine below these folders only. Put your projects here.
const ALLOWED = ["/home/dev/projects/"];

function outside(path) {
  if (typeof path !== "string" || path === "") return true;
  if (path.split(/[\\/]/).includes("..")) return true;
  if (path.startsWith("~")) return true;
  const absolute = path.startsWith("/") || /^[A-Za-z]:/.test(path) || path.startsWith("\\");
  return absolute && !ALLOWED.some((folder) => path.startsWith(folder));
}

function handle(event) {
  const { path, paths } = event.toolInput;
  const all = Array.isArray(paths) ? paths : [path];
  const bad = all.filter(outside);
  if (all.length === 0 || bad.length > 0) {
    return { decision: "block", reason: "outside of the project: " + (bad.join(", ") || "no path") };
  }
  return { decision: "allow" };
}
