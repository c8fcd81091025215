package binding

import (
	"context"
	"testing"
	"time"

	"hcpx/internal/manifest"
)

// §8.2: what "auto" places comes by its parts, and not after the run.
func Test_8_2_PartsOfACredential(t *testing.T) {
	m, err := NewHub(Options{}).Mint(context.Background(), &manifest.Binding{Mode: Mock, Hub: HubNone}, Scope{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"token": MockCredential, "username": MockCredential, "password": MockCredential, "other": ""} {
		if value, ok := m.Part(name); value != want || ok != (want != "") {
			t.Errorf("%s: %q %v", name, value, ok)
		}
	}
	m.Release()
	for _, gone := range []*Minted{m, nil} {
		if value, ok := gone.Part("token"); ok || value != "" {
			t.Errorf("after the run: %q", value)
		}
	}
}
