// Draws the app's icons: a scalloped seal in vermilion with a tick, as SVG and as PNGs rasterised here, without an
// image library. Run by hand when the glyph changes: `node .ci/icons.mjs`.
import { writeFileSync } from 'node:fs';
import { crc32, deflateSync } from 'node:zlib';

const vermilion = [181, 54, 28];
const paper = [253, 252, 250];
const lobes = 12;
const samples = 4;

/** Distance of the seal's edge from the middle at `angle`, as a part of half the icon. */
const edge = (angle, radius) => radius * (1 + 0.055 * Math.cos(lobes * angle));
const segment = (x, y, [ax, ay], [bx, by]) => {
  const along = Math.max(
    0,
    Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2)),
  );
  return Math.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay));
};
const tick = [
  [-0.3, 0.02],
  [-0.08, 0.24],
  [0.32, -0.2],
];

/** Colour at a point of the square −1…1, or null for nothing. */
const paint = (x, y, { radius, ground }) => {
  const [distance, angle] = [Math.hypot(x, y), Math.atan2(y, x)];
  const scale = radius / 0.86;
  const [u, v] = [x / scale, y / scale];
  if (distance > edge(angle, radius)) return ground;
  const onTick = Math.min(segment(u, v, tick[0], tick[1]), segment(u, v, tick[1], tick[2])) < 0.075;
  const onRing = Math.abs(Math.hypot(u, v) - 0.66) < 0.022;
  return onTick || onRing ? paper : vermilion;
};

const png = (size, look) => {
  const rows = Buffer.alloc(size * (size * 4 + 1));
  for (let py = 0; py < size; py += 1) {
    for (let px = 0; px < size; px += 1) {
      const sum = [0, 0, 0, 0];
      for (let s = 0; s < samples * samples; s += 1) {
        const x = ((px + ((s % samples) + 0.5) / samples) / size) * 2 - 1;
        const y = ((py + (Math.floor(s / samples) + 0.5) / samples) / size) * 2 - 1;
        const colour = paint(x, y, look);
        if (colour !== null) for (const [i, part] of [...colour, 255].entries()) sum[i] += part;
      }
      const covered = sum[3] / 255;
      const at = py * (size * 4 + 1) + 1 + px * 4;
      for (let i = 0; i < 3; i += 1) rows[at + i] = covered === 0 ? 0 : Math.round(sum[i] / covered);
      rows[at + 3] = Math.round(sum[3] / (samples * samples));
    }
  }
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
    const out = Buffer.alloc(body.length + 8);
    out.writeUInt32BE(data.length, 0);
    body.copy(out, 4);
    out.writeUInt32BE(crc32(body) >>> 0, body.length + 4);
    return out;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(size, 0);
  head.writeUInt32BE(size, 4);
  head.set([8, 6, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
};

const svg = () => {
  const points = Array.from({ length: 180 }, (_, i) => {
    const angle = (i / 180) * 2 * Math.PI;
    const r = edge(angle, 0.9) * 32;
    return `${(32 + r * Math.cos(angle)).toFixed(1)} ${(32 + r * Math.sin(angle)).toFixed(1)}`;
  });
  const at = ([x, y]) => `${(32 + x * 33.5).toFixed(1)} ${(32 + y * 33.5).toFixed(1)}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><path fill="#b5361c" d="M${points.join('L')}Z"/><circle cx="32" cy="32" r="22" fill="none" stroke="#fdfcfa" stroke-width="1.5"/><path fill="none" stroke="#fdfcfa" stroke-width="5" stroke-linecap="round" stroke-linejoin="round" d="M${tick.map(at).join('L')}"/></svg>\n`;
};

const put = (name, data) => writeFileSync(new URL(`../static/${name}`, import.meta.url), data);
put('icon.svg', svg());
put('icon-192.png', png(192, { radius: 0.9, ground: null }));
put('icon-512.png', png(512, { radius: 0.9, ground: null }));
put('icon-maskable-512.png', png(512, { radius: 0.66, ground: paper }));
