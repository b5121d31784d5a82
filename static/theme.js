// Runs before the first paint, so that a chosen theme never flashes. Reads one key, writes two attributes.
(() => {
  try {
    const chosen = JSON.parse(localStorage.getItem('countersign.settings') ?? '{}');
    const root = document.documentElement;
    if (['light', 'dark', 'contrast'].includes(chosen.theme)) root.dataset.theme = chosen.theme;
    if (chosen.density === 'compact') root.dataset.density = 'compact';
  } catch {
    // Storage refused or damaged: the system theme is a good answer.
  }
})();
