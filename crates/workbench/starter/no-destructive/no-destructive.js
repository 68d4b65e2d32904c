// Runs in a sandbox, without files and without a network, before a tool does.
// In: the event. Out: { decision: "allow" or "block", reason }. No answer in time blocks, see `on_timeout`.
function handle(event) {
  var command = event.toolInput.command || "";
  // Add what must not happen here. For far more than a pattern can find there is `destructive` in hookgate.toml.
  if (/\brm\s+-[a-z]*[rf]|\bmkfs\b|\bdd\s+if=/.test(command)) {
    return { decision: "block", reason: "destructive command blocked" };
  }
  return { decision: "allow" };
}
