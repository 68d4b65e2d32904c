// input: event object, output: { decision, reason, updatedInput? }
function handle(event) {
  if (event.toolName === "exec") {
    var cmd = (event.toolInput.command || "");
    if (/rm\s+-rf|mkfs|dd\s+if=/.test(cmd)) {
      return { decision: "block", reason: "destructive command blocked" };
    }
  }
  return { decision: "allow" };
}
