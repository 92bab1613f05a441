// Returns all words that the page shows, one block a line, those in shadow trees included.
const BLOCK = /^(?!inline|contents|ruby)/;

function childrenOf(node) {
  if (node.localName === "slot" && node.assignedNodes().length > 0) {
    return node.assignedNodes();
  }
  if (node.localName === "details" && !node.open) {
    return node.querySelectorAll(":scope > summary");
  }
  return (node.shadowRoot ?? node).childNodes;
}

function isShown(element, style) {
  return style.display === "contents" || element.checkVisibility();
}

// Buttons stand apart from each other also where they are in one line.
function edgeOf(element, style) {
  if (BLOCK.test(style.display)) {
    return "\n";
  }
  return element.localName === "button" ? " " : "";
}

function wordsOf(node) {
  if (node.nodeType === Node.TEXT_NODE) {
    const parent = node.parentElement;
    const isVisible = parent === null || getComputedStyle(parent).visibility === "visible";
    return isVisible ? node.data.replace(/\s+/g, " ") : "";
  }
  if (node.nodeType !== Node.ELEMENT_NODE || node.matches("script, style, template")) {
    return "";
  }
  const style = getComputedStyle(node);
  if (!isShown(node, style)) {
    return "";
  }
  const inner = Array.from(childrenOf(node), wordsOf).join("");
  const edge = edgeOf(node, style);
  return edge + inner + edge;
}

const lines = wordsOf(document.body).split("\n");
return lines.map((line) => line.replace(/ +/g, " ").trim()).filter((line) => line !== "").join("\n");
