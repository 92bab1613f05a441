// Replaces what differs from run to run: times, ages, ids and ports become zeros, and the elements that arguments[0] selects become blank.
const blank = arguments[0];

const CHANGES = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "00000000-0000-0000-0000-000000000000"],
  [/\b[0-9a-f]{8}(?=…)/g, "00000000"],
  [/\d{4}-\d\d-\d\d/g, "2000-01-01"],
  [/\d\d:\d\d:\d\d(\.\d+)?/g, "00:00:00"],
  [/\d\d:\d\d/g, "00:00"],
  [/\b\d+(\.\d+)? (ms|s|min|h|d)\b( \d+ (s|min|h)\b)?/g, "0 s"],
  [/127\.0\.0\.1:\d+/g, "127.0.0.1:0"],
];

function isBlank(element) {
  return blank.some((selector) => element.matches(selector));
}

function settle(node) {
  if (node.nodeType === Node.TEXT_NODE) {
    const text = CHANGES.reduce((text, [from, to]) => text.replace(from, to), node.data);
    if (text !== node.data) {
      node.data = text;
    }
    return;
  }
  if (node.nodeType === Node.ELEMENT_NODE && isBlank(node)) {
    node.style.visibility = "hidden";
  }
  for (const child of [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes]) {
    settle(child);
  }
}

settle(document.body);
