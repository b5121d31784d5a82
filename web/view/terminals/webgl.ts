/** Draws with the graphics card where there is one; a card that is only imagined is slower than the page itself. */
import type { Terminal } from '@xterm/xterm';

const software = /swiftshader|llvmpipe|softpipe|software|basic render|virgl|mesa offscreen/i;

let hasCard: boolean | null = null;
const looked = (): boolean => {
  const gl = document.createElement('canvas').getContext('webgl2', { failIfMajorPerformanceCaveat: true });
  if (gl === null) return false;
  const info = gl.getExtension('WEBGL_debug_renderer_info');
  const name: unknown = info === null ? null : gl.getParameter(info.UNMASKED_RENDERER_WEBGL);
  gl.getExtension('WEBGL_lose_context')?.loseContext();
  return typeof name === 'string' && !software.test(name);
};

export const loadWebgl = (terminal: Terminal): void => {
  if (!(hasCard ??= looked())) return;
  void import('@xterm/addon-webgl').then(({ WebglAddon }) => {
    try {
      const addon = new WebglAddon();
      // The page takes over where the card leaves off.
      addon.onContextLoss(() => addon.dispose());
      terminal.loadAddon(addon);
    } catch {
      hasCard = false; // no context was to be had; the page draws
    }
  });
};
