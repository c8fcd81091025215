// Package app wires the core: from a home directory and an environment to the Executor of §6 and the
// Lifecycle of §11. It is the only place that names every kind: the store on disk, the hub, the sandbox,
// each adapter. It decides nothing.
//
// Nouns: Options (what a process gives), Caller (what a command line says of who acts), App (the wired
// runtime). Open reads settings and opens nothing else: a thing is made when it is first asked for, so that
// a cold exec pays for what it uses.
//
// The kinds are a map literal; a manifest that names another adapter finds none and is not executable.
package app
