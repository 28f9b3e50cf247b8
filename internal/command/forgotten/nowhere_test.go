package forgotten

import (
	"path/filepath"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestNowhere: without a folder for state, what is forgotten of a server's journal is told as not kept; that of a file has its place beside it.
func TestNowhere(t *testing.T) { // it sets the environment
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	server, err := place.ParseSealed("--journal", "postgres://u@127.0.0.1:1/db", "")
	if err != nil {
		t.Fatal(err)
	}
	file, err := place.ParseSealed("--journal", filepath.Join(t.TempDir(), "j.db"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   place.Place
		want int
	}{{server, 1}, {file, 0}} {
		warned := 0
		j, _ := Keep(memory.New(), c.at, func(error) { warned++ })
		rec := persist.Record{ID: persist.ID{Key: "k"}, Origin: "https://api.example:443", Method: "POST", Target: "/", WireKey: "k", Fingerprint: make([]byte, 32)}
		rec, _, err := j.Begin(t.Context(), rec)
		if err == nil {
			err = j.Forget(t.Context(), rec)
		}
		if err != nil || warned != c.want || (Nowhere(c.at) != nil) != (c.want > 0) {
			t.Errorf("%s: %d warnings, %v; want %d", c.at.Name, warned, err, c.want)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}
