// Filters: a form with data-items filters the elements of that selector by their data-* values and by their text.
(() => {
  const forms = [...document.querySelectorAll("form.filters")];
  const items = (form) => [...document.querySelectorAll(form.dataset.items)];
  const text = new Map();
  const words = (item) => {
    if (!text.has(item)) text.set(item, item.textContent.toLowerCase());
    return text.get(item);
  };
  const fits = (item, wanted) => Object.entries(wanted).every(([name, value]) =>
    !value || (name === "text" ? value.toLowerCase().split(/\s+/).every((word) => words(item).includes(word))
      : item.dataset[name] === value));
  const apply = (form) => {
    const wanted = Object.fromEntries(new FormData(form));
    const all = items(form);
    let kept = 0;
    for (const item of all) {
      item.hidden = !fits(item, wanted);
      kept += !item.hidden;
    }
    form.querySelector("output").textContent = `${kept} of ${all.length} shown`;
  };
  for (const form of forms) {
    form.hidden = false;
    for (const change of ["input", "change"]) form.addEventListener(change, () => apply(form));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(() => apply(form)));
    apply(form);
  }

  // A link with data-filter sets the filters of the form of that section, all others of it to "all".
  for (const link of document.querySelectorAll("a[data-filter]")) {
    link.addEventListener("click", () => {
      const form = document.querySelector(`${link.getAttribute("href")} form.filters`);
      form.reset();
      for (const [name, value] of Object.entries(JSON.parse(link.dataset.filter))) form.elements[name].value = value;
      apply(form);
    });
  }

  // A link to something that is filtered out shows it, and keyboard focus goes there.
  const arrive = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const form = forms.find((one) => target.hidden && target.matches(one.dataset.items));
    if (form) {
      form.reset();
      apply(form);
    }
    if (target.tabIndex < 0) target.tabIndex = -1;
    // Whoever pressed Tab before this event came is inside already, and stays there.
    if (!target.contains(document.activeElement)) target.focus({preventScroll: true});
    target.scrollIntoView();
  };
  addEventListener("hashchange", arrive);
  addEventListener("load", arrive);
})();
