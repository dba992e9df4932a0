import { createApp } from "vue";
import Classify from "./Classify.vue";

createApp(Classify, { src: "./classify/" }).mount("#app");
