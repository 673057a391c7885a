// Draws a page's diagrams in the colours that the reader has chosen.
const theme = document.body.dataset.theme;
const isDark = theme === "dark" ||
  (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
mermaid.initialize({ startOnLoad: false, theme: isDark ? "dark" : "default" });
mermaid.run();
