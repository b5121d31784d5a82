/** The version of the wire, alone in a file: the bridge compares it with the built app before it loads any schema. */

/** Must match exactly at both ends (D-03). Raised with every change of a schema. */
export const wire = 1;
