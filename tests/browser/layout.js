// What is wrong with how a page is laid out: what stands beyond its edge, texts that stand on each other, and texts below
// something that is none of those that float (bars, dialogs, toasts). Gives texts.
() => {
  const SLACK = 1.5; // pixels: edges are rounded, and letters have room around them
  const faults = [];
  const dialogs = [...document.querySelectorAll("dialog[open]")];
  // A dialog covers what is below it; that is meant.
  const root = dialogs.at(-1) ?? document.body;
  const width = document.documentElement.clientWidth;

  const name = (element) => {
    const label = element.getAttribute("aria-label") ?? element.textContent ?? "";
    return `<${element.tagName.toLowerCase()}> “${label.trim().replace(/\s+/g, " ").slice(0, 60)}”`;
  };
  const isShown = (element) =>
    element.checkVisibility({ contentVisibilityAuto: true, opacityProperty: true, visibilityProperty: true });

  // The part of a box that its surroundings let through; null: nothing of it. Those that scroll may be wider inside.
  const seen = (box, element) => {
    let { left, top, right, bottom } = box;
    for (let around = element; around !== null && around !== document.documentElement; around = around.parentElement) {
      const style = getComputedStyle(around);
      if (style.clipPath.startsWith("inset(50%") || style.clip.startsWith("rect(0px, 0px")) return null; // only heard
      if (around === element && style.display === "inline") continue;
      const inner = around.getBoundingClientRect();
      if (style.overflowX !== "visible") {
        left = Math.max(left, inner.left);
        right = Math.min(right, inner.right);
      }
      if (style.overflowY !== "visible") {
        top = Math.max(top, inner.top);
        bottom = Math.min(bottom, inner.bottom);
      }
      if (style.position === "fixed") break;
    }
    return right - left > SLACK && bottom - top > SLACK ? { left, top, right, bottom } : null;
  };

  if (document.documentElement.scrollWidth > document.documentElement.clientWidth + SLACK) {
    faults.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${width}`);
  }

  const texts = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const element = node.parentElement;
    if (element === null || node.data.trim() === "" || ["SCRIPT", "STYLE", "TITLE", "DESC"].includes(element.tagName)) continue;
    if (!isShown(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      const part = seen(box, element);
      if (part === null) continue;
      if (part.right > width + SLACK || part.left < -SLACK) {
        faults.push(`${name(element)} stands at ${Math.round(part.left)}–${Math.round(part.right)} of ${width} px`);
      }
      // The box of a line is higher than its letters.
      const rim = (part.bottom - part.top) * 0.22;
      texts.push({ node, element, left: part.left, right: part.right, top: part.top + rim, bottom: part.bottom - rim });
    }
  }

  // What is painted over by something opaque is not read twice: a bar that stays while the page moves below it.
  const isOpaque = (element) => {
    const alpha = /rgba\(.*, ([\d.]+)\)/.exec(getComputedStyle(element).backgroundColor)?.[1];
    return alpha === undefined || Number(alpha) > 0.9;
  };
  const isCovered = (one, other, x, y) => {
    const stack = document.elementsFromPoint(x, y);
    const lower = stack.indexOf(one.element) > stack.indexOf(other.element) ? one.element : other.element;
    const above = stack.slice(0, Math.max(0, stack.indexOf(lower)));
    return above.some((element) => !element.contains(lower) && isOpaque(element));
  };
  const pairs = [];
  texts.sort((one, other) => one.top - other.top);
  for (let at = 0; at < texts.length; at++) {
    const one = texts[at];
    for (let next = at + 1; next < texts.length && texts[next].top < one.bottom; next++) {
      const other = texts[next];
      if (one.node === other.node) continue;
      const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (across <= SLACK || down <= SLACK) continue;
      pairs.push({ one, other, x: Math.max(one.left, other.left) + across / 2, y: Math.max(one.top, other.top) + down / 2 });
    }
  }

  // From top to bottom, as far as the page scrolls: only what is in the window can be asked for.
  const floats = (element) => {
    for (let around = element; around !== null; around = around.parentElement) {
      if (["fixed", "sticky"].includes(getComputedStyle(around).position) || around.tagName === "DIALOG") return true;
    }
    return false;
  };
  const start = scrollY;
  for (let y = 0; ; y += innerHeight / 2) {
    scrollTo(0, y);
    const moved = scrollY - start;
    for (const { one, other, x, y } of pairs) {
      const at = y - moved;
      if (at < 0 || at >= innerHeight || isCovered(one, other, x, at)) continue;
      faults.push(`${name(one.element)} and ${name(other.element)} stand on each other at ${Math.round(x)}, ${Math.round(y)}`);
    }
    for (const text of texts) {
      const x = (text.left + text.right) / 2;
      const at = (text.top + text.bottom) / 2 - moved;
      if (at < 0 || at >= innerHeight || x < 0 || x >= innerWidth || floats(text.element)) continue;
      const top = document.elementFromPoint(x, at);
      if (top === null || top.contains(text.element) || text.element.contains(top) || floats(top)) continue;
      // What lets the pointer through is not on top, though it is painted there.
      if (getComputedStyle(text.element).pointerEvents === "none") continue;
      if (isCovered(text, { element: top }, x, at)) {
        faults.push(`${name(text.element)} is covered by ${name(top)}`);
      }
    }
    if (y + innerHeight >= document.documentElement.scrollHeight) break;
  }
  scrollTo(0, start);
  return [...new Set(faults)].slice(0, 20);
}
