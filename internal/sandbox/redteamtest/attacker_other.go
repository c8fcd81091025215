//go:build !linux

package redteamtest

// Attacker does nothing where there is no sandbox to attack.
func Attacker() {}
