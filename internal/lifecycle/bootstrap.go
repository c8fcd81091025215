package lifecycle

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"hcpx/internal/gate"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

//go:embed bootstrap/hcp-cli
var bootstrapFiles embed.FS

// BootstrapDigest is the digest of the embedded hcp-cli (§2.4): lint lifts the reserved id for it alone,
// and a start compares it without hashing anything.
const BootstrapDigest = "sha256:f219a7e03fb532f71cc403279c35155552d0efe2de8e81b72deb32446199d27f"

// bootstrapVersion is the version in its manifest.
const bootstrapVersion = "1.0.0"

// Bootstrap is the embedded pack (§11.4).
func Bootstrap() (fs.FS, error) { return fs.Sub(bootstrapFiles, "bootstrap/hcp-cli") }

// Bootstrapped says whether this program's hcp-cli is in the store: one record is read, nothing hashed.
func (l *Lifecycle) Bootstrapped() bool {
	meta, err := l.Store.Meta(gate.Bootstrap)
	return err == nil && meta.Record.Digest == BootstrapDigest
}

// EnsureBootstrap installs hcp-cli on first use (§11.4), and again when another version of the program
// put its own there. Every start asks, so it reads one record when it stands, and writes nothing: whether
// the files stand too is step 2's matter, and a record that can't be read is repair's. In every session the
// pack counts as activated and connected without a word in the state. It is nobody's act, so it stands in
// no audit.
func (l *Lifecycle) EnsureBootstrap(s protocol.Session) *protocol.Error {
	meta, err := l.Store.Meta(gate.Bootstrap)
	if err == nil && meta.Record.Digest == BootstrapDigest || err != nil && !errors.Is(err, store.ErrNotInstalled) {
		return nil
	}
	return l.installBootstrap(string(s.Principal))
}

func (l *Lifecycle) installBootstrap(by string) *protocol.Error {
	src, err := Bootstrap()
	if err != nil {
		return storeFault(err, "The bootstrap pack cannot be read")
	}
	// A start must not meet a damaged state with a new pack beside it.
	if _, refusal := l.state(); refusal != nil {
		return refusal
	}
	meta := store.Meta{PackID: gate.Bootstrap, Version: bootstrapVersion, Source: "embedded", InstalledAt: l.Now(), InstalledBy: by}
	meta.Record.Digest = BootstrapDigest
	if err := l.Store.Install(gate.Bootstrap, src, meta); err != nil {
		return storeFault(err, "The bootstrap pack cannot be installed")
	}
	if _, refusal := l.putSkill(gate.Bootstrap); refusal != nil {
		return refusal
	}
	return nil
}

// bootstrapIntact says whether hcp-cli stands as it was installed, for doctor and repair.
func (l *Lifecycle) bootstrapIntact() error {
	if !l.Bootstrapped() {
		if _, err := l.Store.Meta(gate.Bootstrap); errors.Is(err, store.ErrNotInstalled) {
			return err
		}
		return fmt.Errorf("it is not the one of this program")
	}
	if _, refusal := l.Gate.Installed(gate.Bootstrap); refusal != nil {
		return refusal
	}
	return nil
}
