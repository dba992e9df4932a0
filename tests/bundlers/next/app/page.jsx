"use client";

import "../app.js";

export default function Page() {
  return <p>Singe</p>;
}
