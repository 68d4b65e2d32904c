const ALLOWED = ["requests", "pytest", "serde", "tokio", "react", "vite"];

const INSTALL = /\b(?:pip3?|uv pip)\s+install\b|\b(?:npm|pnpm)\s+(?:install|i|add)\b|\byarn\s+add\b|\bcargo\s+(?:add|install)\b/;

function handle(event) {
  const line = event.toolInput.command;
  if (typeof line !== "string") return { decision: "block", reason: "a shell call without a command" };
  for (const part of line.split(/[;&|\n]+/)) {
    const found = INSTALL.exec(part);
    if (!found) continue;
    const words = part.slice(found.index + found[0].length).trim().split(/\s+/).filter(Boolean);
    // options may name files, registries and addresses; without words the lock file decides
    const bad = words.find((word) => word.startsWith("-") || !ALLOWED.includes(word));
    if (bad !== undefined) return { decision: "block", reason: bad + " is not on the list of packages; ask for it" };
  }
  return { decision: "allow" };
}
