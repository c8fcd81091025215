package store_test

import (
	"testing"
	"time"

	"hcpx/internal/store"
	"hcpx/internal/store/storetest"
)

// Any kind of store will do.
func TestHCP_11_3_1_OnDisk(t *testing.T) { storetest.Run(t, onDisk) }

// What the stages rest on means the same in another kind: one suite for both.
func TestHCP_11_3_2_InMemoryTheSame(t *testing.T) { storetest.Run(t, inMemory) }

func onDisk(t *testing.T) store.Store {
	return store.OpenFS(t.TempDir()+"/home", store.Options{Now: time.Now})
}

func inMemory(t *testing.T) store.Store { return store.NewMemory(t.TempDir()) }
