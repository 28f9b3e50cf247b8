package place_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
)

// TestShortTellsJournalsApart: the short text of a journal has what tells it from others, and nothing that is secret or of the connection.
func TestShortTellsJournalsApart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/srv/payments.db": "payments.db",
		"j.db":             "j.db",
		"postgres://u:hunter2@h:5432/opfin?sslmode=disable":     "h:5432/opfin",
		"postgres://u@h/opfin?schema=pay&sslmode=disable":       "h/opfin?schema=pay",
		"mysql://u:hunter2@h:3306/opfin?tls=true":               "h:3306/opfin",
		"redis://:hunter2@h:6379/0?keep_key=forever&prefix=pay": "h:6379/0?prefix=pay",
		"redis://h:6379/?keep_key=forever":                      "h:6379",
		"@" + commandtest.WriteFile(t, "url", "postgres://h/a"): "h/a",
	} {
		at, err := place.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := at.Short(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
