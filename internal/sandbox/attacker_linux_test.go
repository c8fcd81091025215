package sandbox_test

import "hcpx/internal/sandbox/redteamtest"

// attackArg is the first argument that turns the test binary into an attacker.
const attackArg = redteamtest.Arg

func attacker() { redteamtest.Attacker() }
