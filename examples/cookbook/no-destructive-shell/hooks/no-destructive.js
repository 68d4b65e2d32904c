const DESTROYS = [
  /\brm\s+(-\w+\s+)*-\w*[rR]/,
  /\bfind\b.*\s-delete\b/,
  /\b(mkfs|wipefs|shred)\b/,
  /\bdd\b.*\bof=\/dev\//,
  /\bgit\s+(reset\s+--hard|clean\s+-\w*f)/,
];

function handle(event) {
  const line = event.toolInput.command;
  if (typeof line !== "string") {
    return { decision: "block", reason: "a shell call without a command" };
  }
  if (DESTROYS.some((pattern) => pattern.test(line))) {
    return { decision: "block", reason: "this line deletes more than one file; ask the user to run it" };
  }
  return { decision: "allow" };
}
