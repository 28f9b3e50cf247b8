package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Two batches of one file on one journal share it: each row is sent once, and both end well with all answers.
func TestBatchesShareAJournal(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, journal string) {
		for name, more := range map[string][]string{"in any order": nil, "ordered": {"--ordered-by", "group"}} {
			t.Run(name, func(t *testing.T) {
				var mu sync.Mutex
				sent := map[string]int{}
				arrived, release := make(chan struct{}), make(chan struct{})
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
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
				file := writeFile(t, "in.csv", "id,group\na,1\nb,2\n")
				args := append([]string{"batch", file, "--url", s.url, "--key", prefix + ":{id}", "--journal", journal, "--workers", "2"}, more...)
				firstOnly := writeFile(t, "first.csv", "id,group\na,1\n")
				first := append([]string{}, args...)
				first[1] = firstOnly
				done := make(chan ran, 1)
				go func() {
					var out, errs strings.Builder
					status := exec(context.Background(), first, strings.NewReader(""), &out, &errs)
					done <- ran{status, out.String(), errs.String()}
				}()
				<-arrived
				second := run(t, args...).want(t, exitOK)
				if got := <-done; got.status != exitOK {
					t.Errorf("the first: status %d, stderr %s", got.status, got.err)
				}
				if n := strings.Count(second.out, `"result":"done"`); n != 2 || !strings.Contains(second.out, `"source":"journal"`) {
					t.Errorf("stdout\n%s", second.out)
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
	onServers(t, func(t *testing.T, journal string) {
		url, arrived, release := blocking(t)
		file := writeFile(t, "in.csv", "id\na\n")
		args := fast("batch", file, "--url", url, "--key", "o:{id}", "--journal", journal, "--max-attempts", "1")
		end := beside(arrived, args...)
		second := run(t, append(args, "--max-elapsed", "300ms")...).want(t, exitUnknown)
		close(release)
		end()
		if l := second.only(t); l.Error == nil || l.Error.Code != "in_flight" || l.Sends != 0 {
			t.Errorf("%+v", l)
		}
	})
}
