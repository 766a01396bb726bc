// The colour scheme: that of the system unless the user has chosen another. Runs before the page is drawn, so that it never flashes.
(() => {
  const place = "rockpool-theme", names = ["system", "light", "dark"];
  const read = () => { try { return localStorage.getItem(place); } catch { return null; } };
  const apply = (name) => {
    if (name === "light" || name === "dark") document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
  };
  apply(read());
  addEventListener("storage", (event) => { if (event.key === place) apply(event.newValue); });
  addEventListener("DOMContentLoaded", () => {
    const select = document.getElementById("theme");
    select.value = names.includes(read()) ? read() : "system";
    select.addEventListener("change", () => {
      try { localStorage.setItem(place, select.value); } catch { /* It lasts as long as the page then. */ }
      apply(select.value);
    });
  });
})();
