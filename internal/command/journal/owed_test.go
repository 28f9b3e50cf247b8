package journal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestStatsOwed: stats counts the results that wait for OnResult, as text, as JSON and for Prometheus, and the journal counts as many.
func TestStatsOwed(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "j.db")
	name := filepath.Join(t.TempDir(), "oncehttp.prom")
	stats := func(owed bool) {
		t.Helper()
		text := commandtest.Run(t, "journal", "stats", "--journal", journal, "--prometheus", name)
		text.Want(t, terminal.ExitOK)
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		json := commandtest.Run(t, "journal", "stats", "--journal", journal, "--json")
		json.Want(t, terminal.ExitOK)
		sample := map[bool]string{true: `oncehttp_result_owed{journal="j.db"} 1`, false: `oncehttp_result_owed{journal="j.db"} 0`}[owed]
		for got, want := range map[string]string{text.Out: "owed          1 result for OnResult\n", json.Out: `"owed":1`} {
			if strings.Contains(got, want) != owed {
				t.Errorf("owed %t: want %q only then in\n%s", owed, want, got)
			}
		}
		if !strings.Contains(string(file), sample+"\n") {
			t.Errorf("no %s in\n%s", sample, file)
		}
	}
	begin(t, journal, "http://127.0.0.1:1", time.Hour, func(rec *persist.Record) { rec.Results = true })
	stats(false)
	hold(t, journal)
	stats(true)
}

// hold holds the only record of a journal, with a result owed.
func hold(t *testing.T, journal string) {
	t.Helper()
	j, err := bolt.Open(journal, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Fatal(err)
		}
		rec.State, rec.HoldReason, rec.OwedFrom = persist.StateHeld, persist.HoldUnclear, time.Now()
		if _, err := j.Update(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
}
