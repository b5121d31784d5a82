/** The files someone needs to check a receipt without us, made from its envelope; and the commands that use them. */
import { openEnvelope, payloadType, preAuthEncoding, predicateType } from '#protocol/receipts.ts';
import type { ReceiptForms, ReceiptProof } from '#lib/workers/verify-contract.ts';
import { words } from '#lib/text/receipts.en.ts';

export interface SavedFile {
  readonly label: string;
  readonly name: string;
  readonly type: string;
  readonly content: string | Uint8Array<ArrayBuffer>;
}

const binary = 'application/octet-stream';
const json = 'application/json';

/** `forms` once everything held; their key is the pinned one or led to from it, never one that merely came along. */
export const filesOf = (proof: ReceiptProof, forms: ReceiptForms | null): readonly SavedFile[] => {
  const n = String(proof.receipt.seq);
  const { save: label } = words;
  const { action, envelope } = proof.receipt;
  const opened = openEnvelope(envelope);
  const file = (name: string, label: string, type: string, content: SavedFile['content']): SavedFile => ({
    label,
    name,
    type,
    content,
  });
  const signed =
    opened === null ? null : preAuthEncoding(payloadType, opened.payload, (text) => new TextEncoder().encode(text));
  return [
    file(`${n}.dsse.json`, label.envelope, json, envelope),
    ...(action === null ? [] : [file(`${n}.action.json`, label.action, json, action)]),
    ...(signed === null ? [] : [file(`${n}.pae`, label.signedBytes, binary, new Uint8Array(signed))]),
    ...(opened === null ? [] : [file(`${n}.sig`, label.signature, binary, new Uint8Array(opened.signature))]),
    ...(forms === null
      ? []
      : [
          file('public.pem', label.key, 'application/x-pem-file', forms.signer),
          file(`${n}.sigstore.json`, label.bundle, json, forms.bundle),
          file('trusted_root.json', label.trustedRoot, json, forms.trustedRoot),
          file(`${n}.tlog-proof`, label.tlogProof, 'text/plain', forms.tlogProof),
        ]),
    file('checkpoint', label.checkpoint, 'text/plain', proof.checkpoint),
  ];
};

/** For the files above. The first asks only for the signature, the second also for the place in the log. */
export const commandsOf = (seq: number): readonly string[] => [
  `openssl pkeyutl -verify -pubin -inkey public.pem -rawin -in ${seq}.pae -sigfile ${seq}.sig`,
  `cosign verify-blob-attestation --key public.pem --bundle ${seq}.sigstore.json --trusted-root trusted_root.json --type ${predicateType} ${seq}.action.json`,
];

export const save = (file: SavedFile): void => {
  const url = URL.createObjectURL(new Blob([file.content], { type: file.type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = file.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
};
