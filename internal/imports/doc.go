// Package imports makes a pack of a description that somebody else wrote (§15.6): today of an OpenAPI document
// (§3.6). The program hcpxd alone has it.
//
// Nouns: Options (what is asked), Source (the document, from a file or an address), Made (the files of the pack, in
// memory), Report (what stands in it, what was left out, what a person must still decide).
//
// OpenAPI reads, makes, lints and writes; Build between them is pure: the same document and options make the same bytes.
// A pack is written whole or not at all, and only when lint finds no error in it.
//
// What it refuses: a document that is not OpenAPI 3.0 or 3.1, one without an operation or a server that a pack could
// have, and a directory that holds what import did not write. References that leave the document are never followed.
// What a schema says beyond its plain shape (alternatives, negations, conditions) becomes the looser shape around it:
// the server judges, and no valid request is refused here.
package imports
