package results_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestUnowed: a Run with OnResult says once that it ends or holds operations begun by a client without OnResult. It says nothing of its own ones, and a
// Run without OnResult says nothing at all.
func TestUnowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		begins, runs bool // with OnResult
		answer       wiretest.Reply
		lines        int
	}{
		{"ends", false, true, wiretest.Reply{Status: 201}, 1},
		{"holds", false, true, wiretest.Reply{Status: 302}, 1},
		{"ends of its own", true, true, wiretest.Reply{Status: 201}, 0},
		{"nobody delivers", false, false, wiretest.Reply{Status: 201}, 0},
		{"owed to others", true, false, wiretest.Reply{Status: 201}, 0},
		{"unfinished", false, true, wiretest.Reply{Status: 503}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log clienttest.Log
				j := memory.New()
				with := func(onResult bool) *oncehttp.Client {
					made, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{c.answer, c.answer, c.answer, c.answer}}, clienttest.On(j, clienttest.Protected, func(cfg *oncehttp.Config) {
						cfg.Logger = log.Logger()
						if onResult {
							cfg.OnResult = new(business).onResult
						}
					}))
					return made
				}
				begins, runs := with(c.begins), with(c.runs)
				enqueue := func(from, to int) {
					for i := from; i < to; i++ {
						clienttest.Must(t, begins.Enqueue(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint("k", i))))
					}
				}
				enqueue(0, 3)
				pass(t, runs, 10*time.Second)
				enqueue(3, 4)
				pass(t, runs, 10*time.Second)
				said := strings.Count(log.String(), `level=INFO msg="oncehttp: operations owe no result: a client without OnResult began them (said once)" key=k`)
				if said != c.lines || said > 0 && !strings.Contains(log.String(), "operations=3\n") {
					t.Errorf("said %d times, want %d, of 3 operations:\n%s", said, c.lines, log.String())
				}
			})
		})
	}
}
