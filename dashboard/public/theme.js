// Before the first paint, so that a chosen theme does not flash. A file of its own: the page allows no inline script.
(function () {
  var chosen = null;
  try {
    chosen = localStorage.getItem("headrace.theme");
  } catch {
    // Storage may be forbidden; then the system decides.
  }
  var dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = chosen === "dark" || chosen === "light" ? chosen : dark ? "dark" : "light";
})();
