//go:build !linux

package sandbox_test

func attacker() {}

func leaver() {}

func glutton() {}

func host() {}

func family() {}
