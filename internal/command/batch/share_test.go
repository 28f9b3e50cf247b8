package batch_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// Two batches of one file on one journal share it: each row is sent once, and both end well with all answers.
func TestBatchesShareAJournal(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		for name, more := range map[string][]string{"in any order": nil, "ordered": {"--ordered-by", "group"}} {
			t.Run(name, func(t *testing.T) {
				var mu sync.Mutex
				sent := map[string]int{}
				arrived, release := make(chan struct{}), make(chan struct{})
				s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
					b, _ := io.ReadAll(r.Body)
					mu.Lock()
					sent[string(b)]++
					mu.Unlock()
					switch { // the first batch is sending a until the second has sent b, or has looked at a
					case strings.Contains(string(b), `"a"`):
						close(arrived)
						<-release
					case strings.Contains(string(b), `"b"`):
						close(release)
					}
				})
				prefix := strings.ReplaceAll(name, " ", "-")
				file := commandtest.WriteFile(t, "in.csv", "id,group\na,1\nb,2\n")
				args := append([]string{"batch", file, "--url", s.URL, "--key", prefix + ":{id}", "--journal", journal, "--workers", "2"}, more...)
				firstOnly := commandtest.WriteFile(t, "first.csv", "id,group\na,1\n")
				first := append([]string{}, args...)
				first[1] = firstOnly
				done := make(chan commandtest.Ran, 1)
				go func() {
					var out, errs strings.Builder
					status := command.Run(context.Background(), first, strings.NewReader(""), &out, &errs)
					done <- commandtest.Ran{Status: status, Out: out.String(), Err: errs.String()}
				}()
				<-arrived
				second := commandtest.Run(t, args...).Want(t, terminal.ExitOK)
				if got := <-done; got.Status != terminal.ExitOK {
					t.Errorf("the first: status %d, stderr %s", got.Status, got.Err)
				}
				if n := strings.Count(second.Out, `"result":"done"`); n != 2 || !strings.Contains(second.Out, `"source":"journal"`) {
					t.Errorf("stdout\n%s", second.Out)
				}
				mu.Lock()
				defer mu.Unlock()
				for body, n := range sent {
					if n != 1 {
						t.Errorf("%s was sent %d times", body, n)
					}
				}
			})
		}
	})
}

// A row that another process is sending is told so when the wait for it is over.
func TestBatchWaitsForOthersNotForEver(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		url, arrived, release := commandtest.Blocking(t)
		file := commandtest.WriteFile(t, "in.csv", "id\na\n")
		args := commandtest.Fast("batch", file, "--url", url, "--key", "o:{id}", "--journal", journal, "--max-attempts", "1")
		end := commandtest.Beside(arrived, args...)
		second := commandtest.Run(t, append(args, "--max-elapsed", "300ms")...).Want(t, terminal.ExitUnknown)
		close(release)
		end()
		if l := second.Only(t); l.Error == nil || l.Error.Code != "in_flight" || l.Sends != 0 {
			t.Errorf("%+v", l)
		}
	})
}
