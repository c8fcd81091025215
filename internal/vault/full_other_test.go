//go:build unix && !linux

package vault_test

// fullDisk needs Linux.
func fullDisk(string) {}
