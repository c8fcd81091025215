// Package openapi is §3.6: a command that is one operation of an OpenAPI document, 3.0 or 3.1. It reads the document once,
// at install, into a summary of what the pack's commands need; it derives the schema of a command's arguments, renders
// the one request at step 5 (§6.4), and at step 9 sends exactly that, with the credential where the operation's
// security scheme says.
//
// Nouns: Document (as read, with places), operation (what is kept of one), param and body (how a value is written),
// scheme (where a credential goes), client (the one way to a server), answer (what came back).
//
// It refuses rather than guesses: only the manifest's server is called, at an address that was judged before a byte was
// sent; a path value never leaves its segment; a command whose security the binding can't give is never sent without.
//
// How this runtime reads what the standard leaves open: arguments are named as parameters are, and where two share a name
// the later place adds its own (id, id_query); an argument that neither is a parameter nor goes into a body is refused;
// an empty array, and null, send nothing; a nested value in a style that knows none is written as JSON, in deepObject in
// brackets; readOnly properties are no part of a request; a body of GET, HEAD and TRACE exists in 3.1 only.
package openapi
