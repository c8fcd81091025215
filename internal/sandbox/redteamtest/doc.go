// Package redteamtest attacks the sandbox of §10: the known escapes of sandboxes, each as a small probe that does
// one thing and says whether it worked.
//
// Nouns: Attack (a probe, run in a process of its own: the test binary, started again with Arg), Scene (a
// machine in small: what a run may have, what lies outside it, and who might be hurt), Row (an attack with the
// escape that it stands for and with its control). A probe is only worth something when it works outside: whoever
// runs a row proves that first, with the very same probe and the same user.
package redteamtest

// Arg is the first argument that turns a test binary into an attacker.
const Arg = "sandbox-attack"
