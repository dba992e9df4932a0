import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Classify } from "./Classify.jsx";

createRoot(document.getElementById("app")).render(
  <StrictMode>
    <Classify src="./classify/" />
  </StrictMode>,
);
