package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// lines returns what a logger got, a line each: level, message, and the attributes that differ between attempts.
func lines(t *testing.T, log *bytes.Buffer) (all []string) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(v["level"], " ", strings.TrimPrefix(v["msg"].(string), "oncehttp: "), " ", v["key"])
		for _, name := range []string{"attempt", "attempts", "sends", "status", "outcome"} {
			if v[name] != nil {
				text += fmt.Sprint(" ", name, "=", v[name])
			}
		}
		if v["error"] != nil {
			text += " error"
		}
		all = append(all, text)
	}
	return all
}

// TestLog: each attempt is a line at debug, and a run that was not simple one at info: of more than one attempt, or with an error.
func TestLog(t *testing.T) {
	t.Parallel()
	const ended, notSimple = "DEBUG an attempt has ended k ", "INFO an operation took more than one attempt, or has an error k "
	for name, c := range map[string]struct {
		statuses []int
		level    slog.Level
		want     []string
	}{
		"a plain sale": {[]int{201}, slog.LevelDebug, []string{ended + "attempt=1 sends=1 status=201 outcome=confirmed"}},
		"a refusal":    {[]int{402}, slog.LevelInfo, nil},
		"lost, busy, then done": {[]int{0, 503, 201}, slog.LevelDebug, []string{
			ended + "attempt=1 sends=1 outcome=unknown error", ended + "attempt=2 sends=2 status=503 outcome=unknown",
			ended + "attempt=3 sends=3 status=201 outcome=confirmed", notSimple + "attempts=3 sends=3 outcome=confirmed",
		}},
		"the same without debug": {[]int{0, 503, 201}, slog.LevelInfo, []string{notSimple + "attempts=3 sends=3 outcome=confirmed"}},
		"never answered":         {[]int{0}, slog.LevelInfo, []string{notSimple + "attempts=6 sends=6 outcome=unknown error"}},
		"only errors are wanted": {[]int{0}, slog.LevelError, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				client, err := oncehttp.New(oncehttp.Config{
					Journal: memory.New(), Transport: &server{statuses: c.statuses}, Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: c.level})),
				})
				if err != nil {
					t.Fatal(err)
				}
				if resp, err := client.DoKey(request(t, nil), "k"); err == nil {
					_ = resp.Body.Close()
				}
				_ = client.Close()
				got := lines(t, &log)
				if fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
				}
			})
		})
	}
}
