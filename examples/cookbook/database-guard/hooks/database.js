// Comments and what stands in quotes would hide a word or fake one.
function bare(text) {
  return text
    .replace(/\/\*[^]*?\*\//g, " ")
    .replace(/--[^\n]*/g, " ")
    .replace(/'(?:[^']|'')*'/g, "''");
}

function problem(statement) {
  if (/\bdrop\s+(table|database|schema|index|view|role|user)\b/i.test(statement)) return "drops";
  if (/\btruncate\s+(table\s+)?\w/i.test(statement)) return "empties a table";
  if (/\bdelete\s+from\b/i.test(statement) && !/\bwhere\b/i.test(statement)) return "deletes without WHERE";
  if (/\bupdate\s+\S+\s+set\b/i.test(statement) && !/\bwhere\b/i.test(statement)) return "updates without WHERE";
  return null;
}

function texts(value) {
  if (typeof value === "string") return [value];
  if (value && typeof value === "object") return Object.values(value).flatMap(texts);
  return [];
}

function handle(event) {
  for (const text of texts(event.toolInput)) {
    // in a shell line the statement itself stands in quotes, so both readings are looked at
    for (const reading of [text, bare(text)]) {
      for (const statement of reading.split(";")) {
        const found = problem(statement);
        if (found) return { decision: "block", reason: "a statement " + found + "; use a migration that people review" };
      }
    }
  }
  return { decision: "allow" };
}
