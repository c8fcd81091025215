// Package cli is the command line of hcpx (§11.5, §12.1): it reads flags, makes the Session in one place,
// hands every run to the Executor as an envelope, and prints one view as text or as JSON. It decides
// nothing: rules answer, this room shows the answer.
//
// Nouns: Env (what a process has: arguments, streams, environment), deps (what a command may ask for,
// built when first asked), page (text for a person), failure (an error and its exit code, §6.10).
//
// House rules of the output:
//   - stdout carries the answer, stderr everything else; with --json stdout is one JSON value, errors too;
//   - an error is one sentence, and a hint that names the next command;
//   - colour and questions only on a terminal, questions never for an agent (§12.1.6);
//   - text that came from outside is shown with its control characters escaped.
//
// A start builds only the command that is named, because every exec pays for it.
package cli
