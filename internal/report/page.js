(() => {
  'use strict';
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const byId = (id) => document.getElementById(id);
  const items = all('[data-case]'), groups = all('[data-group]'), chips = all('.chip');
  const cases = all('details.case'), reports = all('details.report');
  const search = byId('search'), shown = byId('shown'), clear = byId('clear'), expand = byId('expand');

  // Pressed chips of one kind are alternatives; the kinds and the search words all have to hold.
  const pressed = (kind) => chips.filter((c) => c.dataset.kind === kind && c.getAttribute('aria-pressed') === 'true').map((c) => c.dataset.value);
  const filter = () => {
    const verdicts = pressed('verdict'), levels = pressed('level');
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const active = verdicts.length + levels.length + words.length > 0;
    for (const item of items) {
      const own = item.dataset.verdict.split(' ');
      item.hidden = !((verdicts.length === 0 || verdicts.some((v) => own.includes(v))) &&
        (levels.length === 0 || levels.includes(item.dataset.level)) &&
        words.every((w) => item.dataset.text.includes(w)));
    }
    for (const group of groups) group.hidden = !group.querySelector('[data-case]:not([hidden])');
    const left = cases.filter((c) => !c.hidden).length;
    shown.textContent = `${left} of ${cases.length} shown`;
    clear.hidden = !active;
    byId('nothing').hidden = left > 0;
    label();
  };
  const reset = () => {
    search.value = '';
    for (const chip of chips) chip.setAttribute('aria-pressed', 'false');
    filter();
  };

  const visible = () => cases.filter((c) => !c.hidden);
  const allOpen = () => visible().length > 0 && visible().every((c) => c.open);
  const label = () => { expand.textContent = allOpen() ? 'Collapse all' : 'Expand all'; };
  const toggle = () => {
    const open = !allOpen();
    for (const report of reports) report.open = open;
    for (const item of visible()) item.open = open;
    label();
  };

  // A link to a case, or to a request in it, opens what stands around it, and lifts a filter that hides it.
  const reveal = () => {
    let id = location.hash.slice(1);
    try { id = decodeURIComponent(id); } catch { return; }
    const target = id && byId(id);
    if (!target) return;
    for (let at = target; at; at = at.parentElement) {
      if (at.hidden) reset();
      if (at.tagName === 'DETAILS') at.open = true;
    }
    target.scrollIntoView();
  };

  const copy = async (button) => {
    try {
      await navigator.clipboard.writeText(button.parentElement.querySelector('code').textContent);
      button.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(button.parentElement.querySelector('code'));
      button.textContent = 'Selected';
    }
  };

  for (const chip of chips) {
    chip.addEventListener('click', () => {
      chip.setAttribute('aria-pressed', String(chip.getAttribute('aria-pressed') !== 'true'));
      filter();
    });
  }
  for (const button of all('[data-copy]')) {
    button.hidden = false;
    button.addEventListener('click', () => copy(button));
  }
  for (const item of cases) item.addEventListener('toggle', label);
  search.addEventListener('input', filter);
  clear.addEventListener('click', () => { reset(); search.focus(); });
  byId('reset').addEventListener('click', () => { reset(); search.focus(); });
  expand.addEventListener('click', toggle);
  addEventListener('hashchange', reveal);
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/' && document.activeElement !== search) {
      event.preventDefault();
      search.focus();
    } else if (event.key === 'Escape' && document.activeElement === search) {
      reset();
    }
  });
  byId('toolbar').hidden = false;
  filter();
  reveal();
})();
