// Monday to Thursday, 8 to 16 o'clock UTC: the hours in which somebody can mend it.
function handle() {
  const now = new Date();
  const day = now.getUTCDay();
  const hour = now.getUTCHours();
  if (day >= 1 && day <= 4 && hour >= 8 && hour < 16) return { decision: "allow" };
  return { decision: "block", reason: "deployments run from Monday to Thursday, 8 to 16 o'clock UTC" };
}
