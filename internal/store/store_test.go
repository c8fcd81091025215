package store_test

import (
	"testing"
	"time"

	"hcpx/internal/store"
	"hcpx/internal/store/storetest"
)

func Test_11_3_FS(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return store.OpenFS(t.TempDir()+"/home", store.Options{Now: time.Now})
	})
}

func Test_11_3_Memory(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return store.NewMemory(t.TempDir()) })
}
