/** The wall clock with fractions of a millisecond, read off its edges, so that two processes can be compared. */
const edge = (): number => {
  const at = Date.now();
  while (Date.now() === at);
  return Date.now() - performance.now();
};
const offset = Math.max(edge(), edge(), edge(), edge(), edge());

export const wallMs = (): number => performance.now() + offset;
