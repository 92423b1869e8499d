// Theme: follows the system until the reader chooses; the choice is kept where the browser allows it.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const order = ["auto", "light", "dark"];
  const recall = () => { try { return localStorage.getItem("metabo-theme"); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem("metabo-theme", theme); } catch { /* no storage: not kept */ } };
  const show = (theme) => {
    root.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  show(order.includes(recall()) ? recall() : "auto");
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(root.dataset.theme) + 1) % order.length];
    keep(next);
    show(next);
  });
})();

// What scrolls sideways can be reached and scrolled with the keyboard.
(() => {
  const reach = () => {
    for (const box of document.querySelectorAll(".wide, .output_subarea, .input_area, .highlight pre")) {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      box.toggleAttribute("tabindex", scrolls);
      if (scrolls) {
        box.tabIndex = 0;
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", box.dataset.name || "scrolls sideways");
      }
    }
  };
  addEventListener("load", reach);
  addEventListener("resize", reach);
})();
