package trace

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestLogOfLives: the numbers of attempts and sends in the lines are those of one run, as in an Event: they begin again in the next life.
func TestLogOfLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		j, s := memory.New(), &server{statuses: []int{0}}
		change := func(cfg *oncehttp.Config) {
			cfg.Retry, cfg.Logger = clienttest.Quick(1), slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
		first, _ := clienttest.New(t, s, clienttest.On(j, change))
		if _, err := first.DoKey(request(t, nil), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		s.statuses = []int{201}
		time.Sleep(time.Hour)
		second, _ := clienttest.New(t, s, clienttest.On(j, change))
		clienttest.Pass(t, second)
		want := []string{
			"DEBUG an attempt has ended k attempt=1 sends=1 outcome=unknown error",
			"INFO an operation took more than one attempt, or has an error k attempts=1 sends=1 outcome=unknown error",
			"DEBUG an attempt has ended k attempt=1 sends=1 status=201 outcome=confirmed",
		}
		if got := lines(t, &log); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
