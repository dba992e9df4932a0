/** The place where libraries such as transformers.js look for a runtime; importing this sets it. */

export {};
