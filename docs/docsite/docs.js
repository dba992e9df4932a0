/** The search. Its index is a script, so that it also loads where pages are opened from disk; it is fetched at the first use. */

const root = document.documentElement.dataset.root;
const query = document.getElementById("query");
const found = document.getElementById("found");
const main = document.getElementById("main");
const SHOWN = 20;
let index;

function loaded() {
  index ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${root}search-index.js`;
    script.onload = () => resolve(window.SINGE_INDEX.map((entry) => [...entry, entry.join("\n").toLowerCase()]));
    script.onerror = () => reject(new Error("the index could not be loaded"));
    document.head.append(script);
  });
  return index;
}

/** How well an entry fits: 0 if a word is missing; more where words are in a heading, or are the heading, or another word for the page. */
function fit([page, heading, , text, others, all], words) {
  const [title, name, known] = [page.toLowerCase(), heading.toLowerCase(), `, ${others.toLowerCase()},`];
  let sum = known.includes(`, ${words.join(" ")},`) ? 40 : 0;
  for (const word of words) {
    if (!all.includes(word)) return 0;
    sum += 1 + (name === word ? 60 : name.startsWith(word) ? 20 : name.includes(word) ? 10 : 0) + (title.includes(word) ? 5 : 0);
  }
  return sum + 1 / (1 + text.length);
}

/** Whole words of the text, around the first of these words that it has. */
function excerpt(text, words) {
  const all = text.toLowerCase();
  const place = words.map((word) => all.indexOf(word)).find((at) => at >= 0) ?? 0;
  const start = place > 50 ? Math.min(place, text.indexOf(" ", place - 50) + 1) : 0;
  const last = text.lastIndexOf(" ", start + 170);
  const end = text.length <= start + 170 ? text.length : last > place ? last : start + 170;
  return `${start ? "… " : ""}${text.slice(start, end)}${end < text.length ? " …" : ""}`;
}

async function search() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.hidden = !words.length;
  main.hidden = !!words.length;
  if (!words.length) return;
  let entries;
  try {
    entries = await loaded();
  } catch (error) {
    found.textContent = `No search: ${error.message}.`;
    return;
  }
  const best = entries.map((e) => [fit(e, words), e]).filter(([sum]) => sum).sort(([a], [b]) => b - a);
  const count = document.createElement("p");
  count.textContent = best.length ? `${best.length} ${best.length > 1 ? "places" : "place"}${best.length > SHOWN ? `, the best ${SHOWN}` : ""}` : "Nothing found. Fewer or shorter words find more.";
  const list = document.createElement("ol");
  for (const [, [page, heading, address, text]] of best.slice(0, SHOWN)) {
    const link = document.createElement("a");
    link.href = root + address;
    link.textContent = heading === page ? page : `${page}: ${heading}`;
    link.addEventListener("click", () => { query.value = ""; search(); });
    const under = document.createElement("small");
    under.textContent = excerpt(text, words);
    link.append(under);
    const item = document.createElement("li");
    item.append(link);
    list.append(item);
  }
  found.replaceChildren(count, list);
}

query.addEventListener("focus", () => loaded().catch(() => {}), { once: true });
query.addEventListener("input", search);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(input|textarea|select)$/i.test(document.activeElement?.tagName ?? "")) {
    event.preventDefault();
    query.focus();
  } else if (event.key === "Escape" && query.value) {
    query.value = "";
    search();
  }
});
