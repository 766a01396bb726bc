// Compares two texts line by line, by their longest common subsequence.

/** The most lines per side; in longer texts every line counts as changed. */
const longest = 1500;

/** [{ kind: "same" | "gone" | "new", text }] */
export function lines(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  if (a.length > longest || b.length > longest) {
    return [...a.map((text) => ({ kind: "gone", text })), ...b.map((text) => ({ kind: "new", text }))];
  }
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const result = [];
  let i = 0, j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) { result.push({ kind: "same", text: a[i] }); i += 1; j += 1; }
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) { result.push({ kind: "gone", text: a[i] }); i += 1; }
    else { result.push({ kind: "new", text: b[j] }); j += 1; }
  }
  while (i < a.length) { result.push({ kind: "gone", text: a[i] }); i += 1; }
  while (j < b.length) { result.push({ kind: "new", text: b[j] }); j += 1; }
  return result;
}
