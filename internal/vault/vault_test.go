package vault_test

import (
	"context"
	"path/filepath"
	"testing"

	"hcpx/internal/protocol"
	"hcpx/internal/vault"
	"hcpx/internal/vault/vaulttest"
)

// home is a user's store and configuration, without a keyring.
func home(t *testing.T) vault.Options {
	dir := t.TempDir()
	return vault.Options{Dir: filepath.Join(dir, "home", "secrets"), Config: filepath.Join(dir, "config")}
}

func Test_8_3_Vault(t *testing.T) {
	vaulttest.Run(t, func(t *testing.T) vaulttest.Place {
		o := home(t)
		return vaulttest.Place{Kind: vault.File, Open: func() vault.Store { return vault.Open(o) }}
	})
}

// phrase answers as a person who always types the same.
func phrase(text string) func(context.Context, bool) ([]byte, *protocol.Error) {
	return func(context.Context, bool) ([]byte, *protocol.Error) { return []byte(text), nil }
}
