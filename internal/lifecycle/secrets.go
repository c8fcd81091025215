package lifecycle

import (
	"context"
	"time"

	"hcpx/internal/protocol"
)

// lookTime bounds how long doctor waits for a keyring.
const lookTime = 5 * time.Second

// secretsStand: what is kept can be had, and something uses it (§8.3, §8.5). No secret is read.
func (h *health) secretsStand() {
	if h.Keeper == nil {
		h.ok("keyring", "keyring", "No secret is kept here: bindings that need one answer not_connected.")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	if err := h.Keeper.Check(ctx); err != nil {
		h.fail("keyring", "secrets", err.Message, err.Hint)
	} else if h.Keeper.Kind(ctx) == "keyring" {
		h.ok("keyring", "keyring", "Secrets are kept in the keyring of this login.")
	} else {
		h.ok("keyring", "vault", "Secrets are kept in the encrypted file of the store.")
	}
	if h.st == nil {
		return
	}
	for _, name := range h.st.Orphans() {
		h.warn("keyring", name, "Something is kept for it, and no connection uses it.", "hcpx repair")
	}
}

// repairSecrets deletes what a connect or disconnect that was cut off left behind.
func (l *Lifecycle) repairSecrets(view *RepairView) *protocol.Error {
	st, err := l.state()
	if err != nil {
		return err
	}
	for _, name := range st.Orphans() {
		ended, err := l.sweep(context.Background(), []string{name})
		if err != nil {
			view.Left = append(view.Left, err.Message)
			continue
		}
		view.Done = append(view.Done, "What was kept for "+name+" was deleted: no connection used it.")
		for _, e := range ended {
			view.Done = append(view.Done, e.Message)
		}
	}
	return nil
}
