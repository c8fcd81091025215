//go:build !linux

package sandbox_test

func attacker() {}

func host() {}

func family() {}
