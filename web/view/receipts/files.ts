/** The files someone needs to check a receipt without us, made from its envelope; and the commands that use them. */
import { openEnvelope, payloadType, preAuthEncoding } from '#protocol/receipts.ts';
import type { ReceiptProof } from '#lib/workers/verify-contract.ts';
import { words } from '#lib/text/receipts.en.ts';

export interface SavedFile {
  readonly label: string;
  readonly name: string;
  readonly type: string;
  readonly content: string | Uint8Array<ArrayBuffer>;
}

/** `publicKey` is the pinned one: a key that came along with what it signs proves nothing. */
export const filesOf = (proof: ReceiptProof, publicKey: string, bundle: string | null): readonly SavedFile[] => {
  const n = String(proof.receipt.seq);
  const { save } = words;
  const opened = openEnvelope(proof.receipt.envelope);
  const encoder = new TextEncoder();
  const parts: SavedFile[] =
    opened === null
      ? []
      : [
          {
            label: save.signedBytes,
            name: `${n}.pae`,
            type: 'application/octet-stream',
            content: new Uint8Array(preAuthEncoding(payloadType, opened.payload, (text) => encoder.encode(text))),
          },
          {
            label: save.signature,
            name: `${n}.sig`,
            type: 'application/octet-stream',
            content: new Uint8Array(opened.signature),
          },
          { label: save.key, name: 'public.pem', type: 'application/x-pem-file', content: publicKey },
        ];
  return [
    { label: save.envelope, name: `${n}.dsse.json`, type: 'application/json', content: proof.receipt.envelope },
    ...(bundle === null
      ? []
      : [{ label: save.bundle, name: `${n}.sigstore.json`, type: 'application/json', content: bundle }]),
    ...parts,
    { label: save.checkpoint, name: 'checkpoint', type: 'text/plain', content: proof.checkpoint },
  ];
};

export const opensslCommand = (seq: number): string =>
  `openssl pkeyutl -verify -pubin -inkey public.pem -rawin -in ${String(seq)}.pae -sigfile ${String(seq)}.sig`;

export const save = (file: SavedFile): void => {
  const url = URL.createObjectURL(new Blob([file.content], { type: file.type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = file.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
};
