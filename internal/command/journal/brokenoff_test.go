package journal_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestStuckBrokenOff: a redrive that was broken off between its mark and its begin is named with --broken-off, with the command that finishes it. Then it is not named any more.
func TestStuckBrokenOff(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "j.db")
	routed(t, at, 404, func(c *oncehttp.Client) {
		for _, key := range []oncehttp.Key{"a", "b", "c"} {
			clienttest.Must(t, c.Enqueue(clienttest.Request(t, "POST", "https://api.example.com/v1", "{}"), key))
		}
		clienttest.Resume(t, c)
		if _, err := c.Redrive(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
	})
	j := opened(t, at)
	for key, by := range map[string]string{"a": "a:gen=2", "b": "other"} {
		rec, err := j.Get(t.Context(), persist.ID{Key: key})
		clienttest.Must(t, err)
		rec.ReplacedBy = by
		_, err = j.Amend(t.Context(), rec)
		clienttest.Must(t, err)
	}
	clienttest.Must(t, j.Close())
	stuck := func() string { return commandtest.Run(t, "journal", "stuck", "--broken-off", "--journal", at).Err }
	said := stuck()
	if strings.Count(said, "broken off") != 2 || !strings.Contains(said, "journal redrive a --reason") || !strings.Contains(said, "journal rekey b other --reason") {
		t.Errorf("said %s", said)
	}
	if r := commandtest.Run(t, "journal", "stuck", "--journal", at); strings.Contains(r.Err, "broken off") {
		t.Errorf("without the flag: %s", r.Err)
	}
	if r := commandtest.Run(t, "journal", "redrive", "a", "--reason", "on", "--journal", at); r.Status != 0 {
		t.Errorf("status %d, %s", r.Status, r.Err)
	}
	if said := stuck(); strings.Contains(said, "redrive a ") {
		t.Errorf("after the redrive: %s", said)
	}
}
