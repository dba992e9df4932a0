/**
 * The drawings in the HTML with which Python's objects describe themselves to notebooks: `<img>` and `<svg>`.
 *
 * Contract: each drawing is a div of the class `drawing`. Its elements are made anew, of allowed names and attributes; nothing else of the HTML gets into the page: no text
 * outside a drawing, no style, no script, no address but data of pictures.
 */

const SVG = "http://www.w3.org/2000/svg";
const SHAPES = new Set(["svg", "g", "path", "polyline", "polygon", "line", "rect", "circle", "ellipse", "text", "tspan", "title"]);
const ATTRIBUTES = /^(width|height|viewBox|d|points|x|y|dx|dy|x[12]|y[12]|cx|cy|r|rx|ry|transform|fill|stroke|opacity|role|aria-label|(fill|stroke|font|text)-[a-z-]+)$/;
const PICTURE = /^data:image\/(png|jpeg|gif|webp);base64,/;
const INLINE = /\s(on\w+|style)\s*=/gi;

export function drawings(html) {
  const parsed = document.createElement("template"); // its document is inert: nothing is loaded or run
  parsed.innerHTML = html.replace(INLINE, " data-$1="); // the browser would report each as forbidden by the page's policy
  const found = parsed.content.querySelectorAll("img, svg:not(svg svg)");
  return [...found].map((one) => (one.localName === "svg" ? shape(one) : picture(one))).filter((one) => one).map(framed);
}

function framed(drawing) {
  const frame = Object.assign(document.createElement("div"), { className: "drawing" });
  frame.append(drawing);
  return frame;
}

function picture(given) {
  if (!PICTURE.test(given.src)) return undefined;
  const image = new Image();
  for (const name of ["width", "height"]) if (given.hasAttribute(name)) image[name] = given[name];
  image.alt = given.alt || "A picture";
  image.src = given.src;
  if (!given.alt) return image;
  const figure = document.createElement("figure");
  figure.append(image, Object.assign(document.createElement("figcaption"), { textContent: given.alt }));
  return figure;
}

function shape(given) {
  const made = document.createElementNS(SVG, given.localName);
  for (const { name, value } of given.attributes) if (ATTRIBUTES.test(name)) made.setAttribute(name, value);
  for (const child of given.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) made.append(child.data);
    else if (SHAPES.has(child.localName)) made.append(shape(child));
  }
  return made;
}
