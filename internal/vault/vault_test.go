package vault_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"hcpx/internal/vault"
	"hcpx/internal/vault/vaulttest"
)

// home is a user's store and configuration, without a keyring.
func home(t *testing.T) vault.Options {
	dir := t.TempDir()
	return vault.Options{Dir: filepath.Join(dir, "home", "secrets"), Config: filepath.Join(dir, "config")}
}

func deadline() (context.Context, func()) {
	return context.WithTimeout(context.Background(), time.Minute)
}

func set(t *testing.T, s vault.Store, name, value string) {
	t.Helper()
	if err := s.Set(t.Context(), name, []byte(value)); err != nil {
		t.Fatal(name, err, err.Hint)
	}
}

func Test_8_3_Vault(t *testing.T) {
	vaulttest.Run(t, func(t *testing.T) vaulttest.Place {
		o := home(t)
		return vaulttest.Place{Kind: vault.File, Open: func() vault.Store { return vault.Open(o) }}
	})
}
