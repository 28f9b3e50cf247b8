package seal_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// TestResultsOfSealed: a sealed journal finds owed results if the journal below does, and shares them if that does. StoredID is the ID
// of the record below.
func TestResultsOfSealed(t *testing.T) {
	t.Parallel()
	s := sealer(t, seal.Config{Keys: []seal.Key{testKey("a")}, HashKey: bytes.Repeat([]byte("h"), 32)})
	below := memory.New()
	j, err := s.Journal(context.Background(), below)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := persist.As[persist.SharedResults](j); !ok {
		t.Error("over persist/memory it is no persist.SharedResults")
	}
	if _, ok := persist.As[persist.Counter](j); !ok {
		t.Error("over persist/memory it is no persist.Counter")
	}
	rec, _, err := j.Begin(t.Context(), full("k"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := below.Get(t.Context(), s.StoredID(rec.ID)); err != nil {
		t.Errorf("Get below, of StoredID: %v", err)
	}
	file, err := openBolt(filepath.Join(t.TempDir(), "journal.db"), s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	_, finds := persist.As[persist.Results](file)
	if _, shared := persist.As[persist.SharedResults](file); !finds || shared {
		t.Errorf("over persist/bolt it is a persist.Results: %t, a persist.SharedResults: %t; want true and false", finds, shared)
	}
	plain, err := s.Journal(context.Background(), struct{ persist.Journal }{memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, counts := persist.As[persist.Counter](file); !counts {
		t.Error("over persist/bolt it is no persist.Counter")
	}
	_, finds = persist.As[persist.Results](plain)
	if _, counts := persist.As[persist.Counter](plain); finds || counts {
		t.Errorf("over a journal without abilities it is a persist.Results: %t, a persist.Counter: %t; want neither", finds, counts)
	}
}
