import { mount } from "svelte";
import Classify from "./Classify.svelte";

mount(Classify, { target: document.getElementById("app"), props: { src: "./classify/" } });
