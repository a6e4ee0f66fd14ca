// Elements with what is in them. Text is only ever set as text.

type Child = Node | string | null | undefined | false;

export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) made.append(child);
  }
  return made;
}

const svgSpace = "http://www.w3.org/2000/svg";
export function svg(name: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(svgSpace, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

// Text that came from anywhere: it does not turn the direction of what is around it.
export function foreign(text: string): HTMLElement {
  return element("bdi", {}, text);
}

// One small box for all that explains something, in front of everything and within the window.
const tip = element("div", { id: "tip", role: "tooltip", hidden: "" });
export function explain(target: HTMLElement, text: string): void {
  const show = () => {
    tip.textContent = text;
    tip.hidden = false;
    if (!tip.isConnected) document.body.append(tip);
    const at = target.getBoundingClientRect();
    const box = tip.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, window.innerWidth - box.width - 8));
    const above = at.top - box.height - 6;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 4 ? above : at.bottom + 6}px`;
  };
  const hide = () => {
    tip.hidden = true;
  };
  target.setAttribute("aria-description", text);
  target.addEventListener("pointerenter", show);
  target.addEventListener("focus", show);
  target.addEventListener("pointerleave", hide);
  target.addEventListener("blur", hide);
}
