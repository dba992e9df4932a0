/**
 * The front page. It shows what this browser can do; the benchmark and Python are loaded on demand.
 */

import { findFacts } from "./front-facts.js";

const byId = (id) => document.getElementById(id);

function element(tag, text, className) {
  return Object.assign(document.createElement(tag), { textContent: text, className: className ?? "" });
}

/** Run `work` at the first use of a button; show an error if it cannot be loaded. */
function whenUsed(button, status, work) {
  button.addEventListener("click", async (event) => {
    event.preventDefault();
    try {
      await work();
    } catch (error) {
      status.dataset.state = "error";
      status.textContent = error?.message ?? String(error);
    }
  });
}

async function showFacts() {
  const rows = (await findFacts()).map(({ name, has, short, why }) => {
    const row = document.createElement("div");
    const mark = has === undefined ? element("dd", short) : element("dd", short ?? (has ? "yes" : "no"), has ? "yes" : "no");
    row.append(element("dt", name), mark, element("dd", why, "why"));
    return row;
  });
  byId("facts").replaceChildren(...rows);
  byId("facts").setAttribute("aria-busy", "false");
}

async function showOffline() {
  if (!("serviceWorker" in navigator)) return;
  await navigator.serviceWorker.ready;
  byId("offline").textContent = "Works offline from now on";
}

/** The pictures of the gallery move when they come into view, and when one points at their card. */
function movePictures() {
  const move = (card) => {
    for (const part of card.querySelectorAll(".plate *")) {
      for (const motion of part.getAnimations()) {
        motion.currentTime = 0;
        motion.play();
      }
    }
  };
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        seen.unobserve(target);
        move(target);
      }
    },
    { threshold: 0.6 },
  );
  for (const card of document.querySelectorAll("#demos .card")) {
    seen.observe(card);
    card.addEventListener("pointerenter", () => move(card));
    card.addEventListener("focus", () => move(card));
  }
}

whenUsed(byId("bench-run"), byId("bench-status"), async () => (await import("./front-benchmark.js")).runBenchmark());
whenUsed(byId("python-start"), byId("python-status"), async () => (await import("./prompt.js")).startPython());
movePictures();
showFacts();
showOffline();
