import fc from 'fast-check';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { filesOf, openStage, temporary, write, type Content } from './checkpoint-stage.ts';

/** No path is a folder of another: what stands in the way is refused by name, and tested elsewhere. */
const path = fc.constantFrom('a', 'b.txt', 'd/x', 'd/y', 'd/e/z', 'ü "q"\n', 'run.sh');
const content: fc.Arbitrary<Content> = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc.constantFrom('', '\r\n', '\ufeffx\n', 'same'),
  fc.constantFrom('a', 'd/x', 'missing').map((link) => ({ link })),
  fc.constant({ run: '#!/bin/sh\n' }),
);
type Act =
  | { readonly act: 'write'; readonly path: string; readonly content: Content }
  | { readonly act: 'remove'; readonly path: string }
  | { readonly act: 'record' }
  | { readonly act: 'restore'; readonly at: number };
const acts: fc.Arbitrary<Act> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ act: fc.constant('write' as const), path, content }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('remove' as const), path }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('record' as const) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('restore' as const), at: fc.nat(9) }) },
);

it('F-23: whatever was written, recorded and put back, a restore of a checkpoint gives exactly its files', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(acts, { minLength: 8, maxLength: 20 }), fc.nat(9), async (list, last) => {
      const directory = temporary();
      const stage = await openStage(directory.path);
      const known: { checkpointId: string; files: Record<string, string> }[] = [];
      const restore = async (at: number): Promise<void> => {
        const one = known[at % known.length];
        if (one === undefined) return;
        const isSame = JSON.stringify(filesOf(stage.folder)) === JSON.stringify(one.files);
        if (!isSame) await stage.restore(one.checkpointId);
        expect(filesOf(stage.folder)).toEqual(one.files);
      };
      try {
        for (const one of [{ act: 'record' } as const, ...list]) {
          if (one.act === 'write') write(stage.folder, one.path, one.content);
          if (one.act === 'remove') rmSync(join(stage.folder, one.path), { force: true });
          if (one.act === 'restore') await restore(one.at);
          if (one.act !== 'record') continue;
          const { checkpointId } = await stage.record('before_turn');
          known.push({ checkpointId, files: filesOf(stage.folder) });
        }
        await restore(last);
      } finally {
        await stage.close();
        directory.remove();
      }
    }),
    { numRuns: 6 },
  );
});
